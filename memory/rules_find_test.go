package memory

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Whole paragraphs with the types and thresholds that people configure: exactly the names in them are found, without a model.
func TestRuleEntities_OfParagraphs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text      string
		types     []string
		threshold float64
		want      []string
	}{
		{"Helen Marsh from Brightwell Ltd wrote about delays with the LedgerFlow Plus application rollout at their Dublin branch. She said that Tomas Novak, their head of purchasing, has been talking to our support desk.",
			[]string{"person", "company", "product", "issue", "location"}, 0.8,
			[]string{"Helen Marsh/person", "Brightwell Ltd/company", "LedgerFlow Plus/product", "Dublin/location", "Tomas Novak/person"}},
		{"The old CRM migration project is nearly finished. Ingrid Solberg, our senior engineer, tested the import job with PostgreSQL 16.2. We're confident about the Q3 deadline for the pilot launch.",
			[]string{"person", "project", "technology", "milestone", "organization"}, 0.7,
			[]string{"CRM migration/project", "Ingrid Solberg/person", "PostgreSQL 16.2/technology", "Q3 pilot launch/milestone"}},
	} {
		var got []string
		for _, e := range ruleEntities(c.text).Entities {
			if kind := wantedType(e.Type, c.types); kind != "" && e.Confidence >= c.threshold {
				got = append(got, e.Name+"/"+kind)
			}
		}
		slices.Sort(got)
		slices.Sort(c.want)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.text, diff)
		}
	}
	if r := ruleEntities("Helen Marsh from Brightwell Ltd wrote.").Relationships; len(r) != 1 || r[0].Type != "works_at" {
		t.Errorf("relations: %+v", r)
	}
	if RulesFind("issue") || !RulesFind("Company") {
		t.Error("what the rules find is told wrongly")
	}
}

// Sentences of every sort, each with exactly the names in it.
func TestRuleEntities_OfSentences(t *testing.T) {
	t.Parallel()
	types := []string{"person", "organization", "location", "product", "project", "milestone"}
	for text, want := range map[string][]string{
		"Priya Natarajan signed the lease for the Lisbon warehouse on Tuesday.":                       {"Priya Natarajan/person", "Lisbon/location"},
		"We bought forty scanners from Hartmann GmbH and shipped them to Oslo.":                       {"Hartmann GmbH/organization", "Oslo/location"},
		"Please ask Kofi Mensah whether the InvoiceBox plugin is ready.":                              {"Kofi Mensah/person", "InvoiceBox/product"},
		"The northern team runs Kafka 3.7 in Rotterdam.":                                              {"Kafka 3.7/product", "Rotterdam/location"},
		"Northgate University hired Dr Amara Okafor.":                                                 {"Northgate University/organization", "Dr Amara Okafor/person"},
		"Our Lighthouse initiative must reach the Q4 release, says Bruno Keller.":                     {"Lighthouse/project", "Q4 release/milestone", "Bruno Keller/person"},
		"Yuki Tanaka works for Pinewood Labs and lives in Osaka.":                                     {"Yuki Tanaka/person", "Pinewood Labs/organization", "Osaka/location"},
		"Did Mr Ferreira approve the order of Castlebridge Bank?":                                     {"Mr Ferreira/person", "Castlebridge Bank/organization"},
		"Thank Marco Bianchi for the flowers that came in March.":                                     {"Marco Bianchi/person"},
		"她叫周婷，来自苏州市。":                                                                                 {"周婷/person", "苏州市/location"},
		"联系人赵敏，在星河科技有限公司工作，办公室位于杭州市。":                                                                 {"赵敏/person", "星河科技有限公司/organization", "杭州市/location"},
		"Support was contacted by Olga Petrova, who moved from Riga to Vienna with Project Meridian.": {"Olga Petrova/person", "Riga/location", "Vienna/location", "Meridian/project"},
	} {
		var got []string
		for _, e := range ruleEntities(text).Entities {
			if kind := wantedType(e.Type, types); kind != "" && e.Confidence >= 0.7 {
				got = append(got, fmt.Sprint(e.Name, "/", kind))
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func factsIn(t *testing.T, text string) (got []string) {
	for _, f := range ruleFacts(text) {
		got = append(got, f.Subject+"|"+f.Predicate+"|"+f.Object)
		if f.Confidence != RuleConfidence {
			t.Errorf("%+v is not as sure as the rules are", f)
		}
	}
	return got
}

func TestRuleFacts_OfParagraphs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"Delivery vans should use winter tyres on mountain roads. Cold stores should follow the hygiene plan. Guest badges should expire within 12 hours of issue. Weekly audits should be scheduled to catch mistakes.": {
			"Delivery vans|should use|winter tyres on mountain roads", "Cold stores|should follow|hygiene plan",
			"Guest badges|should expire within|12 hours of issue", "Weekly audits|should be scheduled to|catch mistakes"},
		"Pumps with two separate motors are known as twin pumps. Glazing usually requires several days of dry weather. The gear pump is the cheapest device used in small workshops.": {
			"Pumps with two separate motors|are|known as twin pumps", "Glazing|requires|several days of dry weather",
			"gear pump|is|cheapest device used in small workshops"},
		"接口必须使用加密连接。": {"接口|必须|使用加密连接"},
	} {
		if diff := cmp.Diff(want, factsIn(t, text)); diff != "" {
			t.Errorf("facts (-want +got):\n%s", diff)
		}
	}
}

func TestRuleFacts_OfSentences(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Every invoice above 5,000 euros must be approved by two managers.": "Every invoice above 5,000 euros|must be approved by|two managers",
		"The night shift starts at ten.":                                    "night shift|starts at|ten",
		"Our Lisbon warehouse stores spare parts for three countries.":      "Our Lisbon warehouse|stores|spare parts for three countries",
		"Refunds cannot exceed the price that was paid.":                    "Refunds|cannot exceed|price that was paid",
		"A premium account includes telephone support.":                     "premium account|includes|telephone support",
		"Olga Petrova manages the Vienna office.":                           "Olga Petrova|manages|Vienna office",
		"Backups are kept for ninety days.":                                 "Backups|are|kept for ninety days",
		"The scanner does not support colour printing.":                     "scanner|does not support|colour printing",
		"Contractors need to renew their badges every year.":                "Contractors|need to renew|their badges every year",
		"仓库每天需要盘点一次。":                                                       "仓库每天|需要|盘点一次",
	} {
		if diff := cmp.Diff([]string{want}, factsIn(t, text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}
