package memory

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestSentences(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":                        nil,
		"One. Two! Three?":        {"One.", "Two!", "Three?"},
		"Version 1.5 is out":      {"Version 1.5 is out"},
		"第一句。第二句！第三":              {"第一句。", "第二句！", "第三"},
		"  a\n\n b  c ":           {"a", "b c"},
		"no end":                  {"no end"},
		"mixed 中文。And English. 完": {"mixed 中文。", "And English.", "完"},
	} {
		if diff := cmp.Diff(want, sentences(text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestExtract_StaysWithinItsLimit(t *testing.T) {
	t.Parallel()
	long := []Message{{Role: "user", Content: strings.Repeat("Many words are said here without an end ", 100)}, {Role: "assistant", Content: "短。"}}
	for _, limit := range []int{1, 2, 5, 20, 100, 2000} {
		text := ""
		for range 5 {
			text = extract(text, long, limit)
			if n := utf8.RuneCountInString(text); n > limit {
				t.Fatalf("limit %d: %d characters", limit, n)
			}
		}
		if text == "" {
			t.Errorf("limit %d: nothing is left", limit)
		}
	}
	if got := extract("", []Message{{Role: "user", Content: "Hello there. My number is 5551234 in Berlin. Bye."}}, 2000); !strings.Contains(got, "5551234") {
		t.Errorf("the sentence with the number is lost: %q", got)
	}
}

// TestRuleEntities_Mistakes: what stands for a name is not a name, an office is not part of one, and neither is the month before it.
func TestRuleEntities_Mistakes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text      string
		want, not []string
	}{
		{"Marie works at Acme Corp. She lives in Zurich. The CEO of Globex is Jane Doe.", []string{"Marie/person", "Zurich/location", "Globex/organization", "Jane Doe/person"}, []string{"She", "CEO of Globex"}},
		{"The European Union and the United Nations met in Geneva.", []string{"European Union/organization", "United Nations/organization", "Geneva/location"}, nil},
		{"Dear Mr. Brown, Thank you for your order.", []string{"Brown/person"}, []string{"Dear Mr", "Mr"}},
		{"Please ask April Jones about it.", []string{"April Jones/person"}, nil},
		{"In March Tesla opened a factory in Texas.", []string{"Texas/location"}, []string{"March Tesla"}},
		{"He read \"Hello World\" twice.", []string{"Hello World/product"}, []string{"World"}},
		{"我是中国人，住在北京市朝阳区。", []string{"北京市/location", "朝阳区/location"}, []string{"中国人", "我是中国"}},
		{"张三和李四在阿里巴巴工作。", []string{"张三/person", "李四/person", "阿里巴巴/organization"}, []string{"张三和李四"}},
		{"这个市场很大，我们国家的经济很好。", nil, []string{"这个市", "我们国", "市", "国"}},
		{"高经理负责华为公司的项目", []string{"华为公司/organization"}, []string{"高经理负责华为公司"}},
	} {
		var got, names []string
		for _, e := range ruleEntities(c.text).Entities {
			if e.Confidence >= 0.7 {
				got, names = append(got, e.Name+"/"+e.Type), append(names, e.Name)
			}
		}
		for _, want := range c.want {
			if !slices.Contains(got, want) {
				t.Errorf("%q: %q is not among %q", c.text, want, got)
			}
		}
		for _, not := range c.not {
			if slices.Contains(names, not) {
				t.Errorf("%q: %q is among %q", c.text, not, got)
			}
		}
	}
	if r := ruleEntities("张三和李四在阿里巴巴工作。 She works at Acme Corp.").Relationships; len(r) != 2 || r[0].Source != "张三" || r[1].Source != "李四" {
		t.Errorf("relations %+v", r)
	}
}

func TestRuleEntities(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want []string
	}{
		{"Yesterday Marie Curie met Dr Smith in Paris.", []string{"Dr Smith/person", "Marie Curie/person", "Paris/location"}},
		{"please call me. thanks", nil},
		{"我叫李雷，在华为技术有限公司上班。", []string{"华为技术有限公司/organization", "李雷/person"}},
		{"张老师推荐了《红楼梦》", []string{"张/person?", "红楼梦/product"}},
		{"", nil},
	} {
		var got []string
		for _, e := range ruleEntities(c.text).Entities {
			if e.Confidence >= 0.7 {
				got = append(got, e.Name+"/"+e.Type)
			}
		}
		for _, want := range c.want {
			if !strings.HasSuffix(want, "?") && !slices.Contains(got, want) {
				t.Errorf("%q: %q is not among %q", c.text, want, got)
			}
		}
		if len(c.want) == 0 && len(got) > 0 {
			t.Errorf("%q: found %q", c.text, got)
		}
	}
	r := ruleEntities("Ada Lovelace works at Acme Corp and Bob lives in Rome.").Relationships
	if len(r) != 2 || r[0].Type != "works_at" || r[0].Target != "Acme Corp" || r[1].Type != "lives_in" || r[1].Target != "Rome" {
		t.Errorf("relations: %+v", r)
	}
}

func TestRules_AreFastOnHostileText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{strings.Repeat("A ", 10_000), strings.Repeat("在", 10_000), strings.Repeat("works at ", 5_000), strings.Repeat("《", 10_000), strings.Repeat("is ", 10_000)} {
		begin := time.Now()
		ruleEntities(text)
		ruleFacts(text)
		extract("", []Message{{Role: "user", Content: text}}, 100)
		if took := time.Since(begin); took > 2*time.Minute {
			t.Errorf("%q… took %v", text[:9], took)
		}
	}
}

func TestRuleFacts(t *testing.T) {
	t.Parallel()
	facts := ruleFacts("The order needs a signature. What is it? It is late. 服务器位于上海。Our cat isn't black!")
	var got []string
	for _, f := range facts {
		got = append(got, fmt.Sprint(f.Subject, "|", f.Predicate, "|", f.Object))
	}
	want := []string{"order|needs|signature", "服务器|位于|上海", "Our cat|isn't|black"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
}

func TestPeriodAndMoment(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"30 days": 30 * 24 * time.Hour, "7天": 7 * 24 * time.Hour, "90 s": 90 * time.Second, "1.5 hours": 90 * time.Minute, "2 Weeks": 14 * 24 * time.Hour,
		"3个月": 90 * 24 * time.Hour, "1 year": 365 * 24 * time.Hour, "15min": 15 * time.Minute, "999999 years": 200 * 365 * 24 * time.Hour,
	} {
		if got, err := period("p", text); err != nil || got != want {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "days", "-3 days", "3 fortnights", "1e9 days"} {
		if got, err := period("p", text); err == nil {
			t.Errorf("%q was read as %v", text, got)
		}
	}
	for raw, want := range map[string]int64{
		``: 0, `null`: 0, `"2030-01-31T09:00:00Z"`: 1896080400000, `"2030-01-31"`: 1896048000000, `1896080400`: 1896080400000, `1896080400000`: 1896080400000,
		`"2030-01-31 09:00:00"`: 1896080400000, `"1896080400"`: 1896080400000,
	} {
		if got, err := moment("t", json.RawMessage(raw)); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", raw, got, err, want)
		}
	}
}

func TestFilter(t *testing.T) {
	t.Parallel()
	object := json.RawMessage(`{"a": 1, "b": "x", "list": ["p", "q"], "deep": {"c": true}, "odd.key": 5, "nothing": null, "*": 7, "whole": {"k": [1, 2]}}`)
	for text, want := range map[string]bool{
		``: true, `null`: true, `{}`: true, `{"a": 1}`: true, `{"a": 1.0}`: true, `{"a": "1"}`: false, `{"b": "x", "a": 2}`: false,
		`{"list": "q"}`: true, `{"list": ["p", "q"]}`: true, `{"list": "z"}`: false, `{"deep.c": true}`: true, `{"odd.key": 5}`: true, `{"*": 7}`: true, `{"?": 7}`: false,
		`{"nothing": null}`: true, `{"missing": null}`: true, `{"missing": 1}`: false, `{"a": {"gte": 1, "lte": 1}}`: true, `{"a": {"gte": 2}}`: false, `{"b": {"gte": "a", "lte": "y"}}`: true,
		`{"b": {"gte": 1}}`: false, `{"a": {"in": [3, 1]}}`: true, `{"a": {"in": []}}`: false, `{"list": {"in": ["q"]}}`: true, `{"missing": {"gte": 0}}`: false,
	} {
		f, err := newFilter(json.RawMessage(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := f.holds(object); got != want {
			t.Errorf("%s holds is %v, want %v", text, got, want)
		}
	}
	for _, text := range []string{`[]`, `5`, `{"a": {"like": "x"}}`, `{"a": {"in": 3}}`} {
		if _, err := newFilter(json.RawMessage(text)); err == nil {
			t.Errorf("%s was accepted", text)
		}
	}
}

func TestCutAndWriting(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		n    int
		want string
	}{{"short", 5, "short"}, {"longer text", 8, "longer…"}, {"数据库里", 3, "数据…"}, {"ab", 1, "a"}, {"ab", 0, ""}, {"ab", -1, ""}} {
		if got := cut(c.text, c.n); got != c.want {
			t.Errorf("cut(%q, %d) = %q, want %q", c.text, c.n, got, c.want)
		}
	}
	w := writing{room: 7}
	if !w.line("%s", "数据") || w.line("%s", "too long") || !w.line("%s", "abcd") || w.line("") {
		t.Errorf("wrote %q with %d left", w.String(), w.room)
	}
	if w.String() != "数据\nabcd" {
		t.Errorf("wrote %q", w.String())
	}
}
