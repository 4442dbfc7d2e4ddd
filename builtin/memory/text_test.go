package memory_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tandem/fault"
	"tandem/llm"
	"tandem/memory"
	"tandem/node/nodetest"
)

func TestMemoryBuffer_FoldsTheOldest(t *testing.T) {
	t.Parallel()
	const kind = "CONVERSATION_BUFFER"
	r := newMemoryRig(t)
	config := `{"max_messages": 12, "summarize_count": 4}`
	for i := range 6 {
		r.want(kind, config, fmt.Sprintf(`{"operation": "add", "message": "message %d", "role": "%s", "metadata": {"n": %d}}`, i, []string{"user", "assistant"}[i%2], i), `{"buffer_full": false, "summary": ""}`)
	}
	r.want(kind, config, `{"operation": "get", "recent_count": 2}`, `{"messages": [{"role": "user", "content": "message 4", "metadata": {"n": 4}}, {"role": "assistant", "content": "message 5"}], "total_messages": 6}`)
	r.want(kind, config, `{"operation": "get", "role": "assistant", "recent_count": 1}`, `{"messages": [{"content": "message 5"}]}`)
	// The seventh is within five of twelve: the four oldest become the summary.
	r.want(kind, config, `{"operation": "add", "message": "message 6"}`, `{"buffer_full": true, "total_messages": 3, "messages": [{"content": "message 4"}, {"content": "message 5"}, {"content": "message 6"}],
		"summary": "user: message 0\nassistant: message 1\nuser: message 2\nassistant: message 3"}`)
	r.want(kind, config, `{"operation": "load_context"}`, `{"context": "Summary of the conversation so far: user: message 0\nassistant: message 1\nuser: message 2\nassistant: message 3\nuser: message 4\nassistant: message 5\nuser: message 6"}`)
	// What there is no room for goes from the front.
	r.want(kind, `{"max_context_chars": 36}`, `{"operation": "load_context"}`, `{"context": "user: message 6"}`)
	r.want(kind, `{"max_context_chars": 60}`, `{"operation": "load_context"}`, `{"context": "Summary of the conversation so far: user: message 0\nassista…"}`)
	r.want(kind, config, `{"operation": "clear"}`, `{"total_messages": 0, "summary": "", "messages": []}`)

	r.node = "dropping"
	config = `{"max_messages": 7, "summarize_count": 2, "auto_summarize": false}`
	for i := range 5 {
		r.want(kind, config, fmt.Sprintf(`{"operation": "add", "message": "m%d"}`, i), `{"summary": ""}`)
	}
	r.want(kind, config, `{"operation": "get"}`, `{"total_messages": 3, "messages": [{"content": "m2"}, {"content": "m3"}, {"content": "m4"}]}`)
	for _, limit := range []int{1, 2, 3, 5, 6} {
		r.node = fmt.Sprint("small", limit)
		for i := range 20 {
			out := r.want(kind, fmt.Sprintf(`{"max_messages": %d}`, limit), fmt.Sprintf(`{"operation": "add", "message": "m%d"}`, i), `{}`)
			var messages []memory.Message
			field(t, out, "messages", &messages)
			if len(messages) > limit || messages[len(messages)-1].Content != fmt.Sprint("m", i) {
				t.Fatalf("limit %d: after message %d there are %v", limit, i, messages)
			}
		}
	}
}

func TestMemoryBuffer_AsksAModel(t *testing.T) {
	t.Parallel()
	const kind = "CONVERSATION_BUFFER"
	r := newMemoryRig(t)
	config := `{"max_messages": 8, "summarize_count": 2, "llm_profile": "p"}`
	down := true
	r.model = func(p memory.Prompt) (string, error) {
		if down {
			return "", errors.New("down")
		}
		return "the model's summary", nil
	}
	for i := range 7 { // full from three on, but there is room
		r.want(kind, config, fmt.Sprintf(`{"operation": "add", "message": "m%d"}`, i), fmt.Sprintf(`{"total_messages": %d, "summary": ""}`, i+1))
	}
	// At eight there is none: rules take the model's place, and nothing is lost.
	r.want(kind, config, `{"operation": "add", "message": "m7"}`, `{"total_messages": 6, "summary": "user: m0\nuser: m1"}`)
	if len(r.warnings) == 0 || !strings.Contains(r.warnings[0], "not summarised") {
		t.Errorf("warnings: %q", r.warnings)
	}
	down = false
	r.want(kind, config, `{"operation": "add", "message": "m8"}`, `{"total_messages": 5, "summary": "the model's summary"}`)
	last := r.prompts[len(r.prompts)-1]
	for _, part := range []string{"user: m0\nuser: m1", "m2", "m3"} {
		if !strings.Contains(last.User, part) {
			t.Errorf("the prompt lacks %q: %s", part, last.User)
		}
	}
}

func TestMemorySummary_CoversEveryFew(t *testing.T) {
	t.Parallel()
	const kind = "CONVERSATION_SUMMARY"
	r := newMemoryRig(t)
	r.want(kind, `{"update_every": 3}`, `{"operation": "update", "messages": ["first", {"role": "assistant", "content": "second"}]}`, `{"summary": "", "covered_messages": 0, "pending_messages": 2}`)
	r.want(kind, `{"update_every": 3}`, `{"operation": "load_context"}`, `{"context": "user: first\nassistant: second"}`)
	r.want(kind, `{"update_every": 3}`, `{"operation": "update", "messages": ["third"]}`, fmt.Sprintf(`{"summary": "user: first\nassistant: second\nuser: third", "covered_messages": 3, "pending_messages": 0, "updated_at": %d}`, nodetest.Start().UnixMilli()))
	r.want(kind, `{"update_every": 3}`, `{"operation": "update", "messages": ["fourth"]}`, `{"covered_messages": 3, "pending_messages": 1}`)
	r.want(kind, `{"update_every": 3}`, `{"operation": "load_context"}`, `{"context": "Summary of the conversation so far: user: first\nassistant: second\nuser: third\nuser: fourth"}`)
	r.want(kind, `{"update_every": 2, "max_summary_chars": 20}`, `{"operation": "update", "messages": ["fifth"]}`, `{"summary": "user: fifth", "covered_messages": 5}`)

	// A failed update keeps the old summary, and the messages wait.
	config := `{"update_every": 1, "llm_profile": "p"}`
	r.want(kind, config, `{"operation": "update", "messages": ["sixth"]}`, `{"summary": "user: fifth", "covered_messages": 5, "pending_messages": 1}`)
	r.model = func(p memory.Prompt) (string, error) { return strings.Repeat("长", 5000), nil }
	out := r.want(kind, config, `{"operation": "update", "messages": ["seventh"]}`, `{"covered_messages": 7, "pending_messages": 0}`)
	var text string
	field(t, out, "summary", &text)
	if n := len([]rune(text)); n != 2000 {
		t.Errorf("the summary has %d characters", n)
	}
	r.want(kind, config, `{"operation": "clear"}`, `{"summary": "", "covered_messages": 0}`)
}

func TestMemoryVectors_FindByMeaning(t *testing.T) {
	t.Parallel()
	const kind = "VECTOR_DATABASE"
	r := newMemoryRig(t)
	r.want(kind, "", `{"operation": "store", "items": [
		{"id": "cat", "content": "the cat sleeps on the sofa", "metadata": {"animal": "cat", "n": 1, "tags": ["pet", "soft"]}},
		{"id": "dog", "content": "the dog sleeps in the garden", "metadata": {"animal": "dog", "n": 2, "tags": ["pet"]}},
		{"id": "zh", "content": "订单已经发货", "metadata": {"animal": null, "n": 3}},
		"a text alone"]}`, `{"total_results": 4, "stored": true}`)
	search := func(config, rest string, want ...string) {
		t.Helper()
		out := r.want(kind, config, `{"operation": "search", `+rest+`}`, `{}`)
		var items []memory.Item
		var scores []float64
		field(t, out, "results", &items)
		field(t, out, "scores", &scores)
		var ids []string
		for _, i := range items {
			ids = append(ids, i.ID)
		}
		if !slices.Equal(ids, want) || len(scores) != len(ids) || !slices.IsSortedFunc(scores, func(a, b float64) int { return -cmpFloat(a, b) }) {
			t.Errorf("%s: found %q with %v, want %q", rest, ids, scores, want)
		}
	}
	search("", `"query": "where does the cat sleep? on the sofa"`, "cat", "dog")
	search("", `"query": "订单 发货 了吗"`, "zh")
	low := `{"similarity_threshold": 0}`
	search(low, `"query": "the cat sleeps", "filters": {"animal": "dog"}`, "dog")
	search(low, `"query": "the cat sleeps", "filters": {"n": {"gte": 1, "lte": 2}}`, "cat", "dog")
	search(low, `"query": "the cat sleeps", "filters": {"tags": "soft"}`, "cat")
	search(low, `"query": "the cat sleeps", "filters": {"animal": {"in": ["dog", "cow"]}, "tags": "pet"}`, "dog")
	search(low, `"query": "the cat sleeps", "filters": {"n": "1"}`) // nothing is converted
	search(`{"similarity_threshold": 1}`, `"query": "the cat sleeps"`)
	search(`{"max_results": 1, "similarity_threshold": 0}`, `"query": "the cat sleeps on the sofa"`, "cat")

	// The same id replaces; an update keeps the metadata it does not bring.
	r.want(kind, "", `{"operation": "update", "items": [{"id": "dog", "content": "a whale swims in the sea"}]}`, `{"total_results": 1}`)
	search("", `"query": "whale in the sea", "filters": {"animal": "dog"}`, "dog")
	r.want(kind, "", `{"operation": "load_context", "query": "whale sea"}`, `{"context": "- a whale swims in the sea"}`)
	r.want(kind, "", `{"operation": "delete", "ids": ["dog", "nothing"]}`, `{"total_results": 1}`)
	r.want(kind, "", `{"operation": "delete", "filters": {"n": {"gte": 3}}}`, `{"total_results": 1}`)
	search(`{"similarity_threshold": 0.1}`, `"query": "whale cat"`, "cat")
}

func cmpFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func TestMemoryVectors_ReindexForAnotherEmbedder(t *testing.T) {
	t.Parallel()
	const kind = "VECTOR_DATABASE"
	r := newMemoryRig(t)
	asked := 0
	r.embed = func(texts []string) ([][]float32, error) {
		var list [][]float32
		for _, text := range texts {
			asked++
			list = append(list, append(llm.HashEmbed(text), 0, 0, 0, 0)) // four more dimensions
		}
		return list, nil
	}
	var items []string
	for i := range 150 {
		items = append(items, fmt.Sprintf(`{"id": "i%d", "content": "item number %d"}`, i, i))
	}
	r.want(kind, "", `{"operation": "store", "items": [`+strings.Join(items, ",")+`]}`, `{"total_results": 150}`)
	other := `{"embedding_profile": "p", "similarity_threshold": 0.6, "max_results": 1}`
	r.refused(kind, other, `{"operation": "search", "query": "x"}`, fault.Conflict, "reindex")
	r.refused(kind, other, `{"operation": "store", "items": ["x"]}`, fault.Conflict, "reindex")
	r.want(kind, other, `{"operation": "reindex"}`, `{"total_results": 150}`)
	r.want(kind, other, `{"operation": "search", "query": "item number 77"}`, `{"results": [{"id": "i77"}]}`)
	r.refused(kind, "", `{"operation": "search", "query": "x"}`, fault.Conflict, "reindex")
	before := asked
	r.want(kind, other, `{"operation": "reindex"}`, `{"total_results": 150}`) // nothing is left to do
	if asked != before+1 {
		t.Errorf("%d texts were embedded again", asked-before-1)
	}
	r.embed = func([]string) ([][]float32, error) { return [][]float32{{1}, {2, 3}}, nil }
	r.refused(kind, other, `{"operation": "search", "query": "x"}`, fault.OutputInvalid, "vectors")
}

func TestMemoryDocuments_FullText(t *testing.T) {
	t.Parallel()
	const kind = "DOCUMENT_STORE"
	r := newMemoryRig(t)
	put := func(id, title, content, rest string) {
		t.Helper()
		r.want(kind, "", fmt.Sprintf(`{"operation": "store", "document_id": %q, "title": %q, "content": %q%s}`, id, title, content, rest), `{"stored": true, "total_count": 1, "documents": [{"document_id": "`+id+`"}]}`)
	}
	put("pay", "Payment guide", "How to pay an invoice. An invoice is paid by card.", `, "tags": ["money"], "metadata": {"year": 2029, "author": "Zoe"}`)
	put("ship", "Shipping", "How goods are shipped. The invoice is in the box.", `, "tags": ["goods"], "metadata": {"year": 2030}`)
	put("zh", "发货说明", "订单付款之后，仓库会在两天内发货。", "")
	search := func(config, input string, want ...string) {
		t.Helper()
		out := r.want(kind, config, input, `{"success": true}`)
		var docs []memory.Document
		var scores []float64
		field(t, out, "documents", &docs)
		field(t, out, "relevance_scores", &scores)
		var ids []string
		for _, d := range docs {
			ids = append(ids, d.DocumentID)
		}
		if !slices.Equal(ids, want) || len(scores) != len(ids) {
			t.Errorf("%s %s: found %q, want %q: %s", config, input, ids, want, out)
		}
		for _, s := range scores {
			if s <= 0 {
				t.Errorf("%s: a score of %v", input, s)
			}
		}
	}
	for _, scoring := range []string{"bm25", "tf_idf", "hybrid"} {
		config := `{"relevance_scoring": "` + scoring + `"}`
		search(config, `{"operation": "search", "query": "invoice"}`, "pay", "ship")
		search(config, `{"operation": "search", "query": "订单发货"}`, "zh")
	}
	search("", `{"operation": "search", "query": "两"}`, "zh")
	search("", `{"operation": "search", "query": "Zoe"}`, "pay")
	search("", `{"operation": "search", "query": "\"invoice\" AND (* OR NEAR"}`, "pay", "ship")
	search("", `{"operation": "search", "query": "()*\"\"^:{}"}`)
	search(`{"search_fields": ["title"]}`, `{"operation": "search", "query": "invoice shipping"}`, "ship")
	search(`{"max_results": 1}`, `{"operation": "search", "query": "invoice"}`, "pay")
	search("", `{"operation": "search", "query": "invoice", "filters": {"year": {"gte": 2030}}}`, "ship")
	search("", `{"operation": "search", "query": "invoice", "filters": {"tags": "money"}}`, "pay")
	search(`{"collection_name": "other"}`, `{"operation": "search", "query": "invoice"}`)

	r.now = r.now.Add(time.Hour)
	r.want(kind, "", `{"operation": "update", "document_id": "pay", "title": "Paying"}`, `{"documents": [{"title": "Paying", "content": "How to pay an invoice. An invoice is paid by card.", "tags": ["money"]}]}`)
	r.want(kind, "", `{"operation": "get", "document_id": "pay"}`, fmt.Sprintf(`{"documents": [{"title": "Paying", "created": %d, "updated": %d}], "total_count": 1}`, nodetest.Start().UnixMilli(), r.now.UnixMilli()))
	put("pay", "New", "nothing of the old", "")
	search("", `{"operation": "search", "query": "invoice"}`, "ship")
	r.want(kind, "", `{"operation": "delete", "document_id": "ship"}`, `{"total_count": 1}`)
	search("", `{"operation": "search", "query": "invoice"}`)

	r.want(kind, "", fmt.Sprintf(`{"operation": "store", "document_id": "file", "file": {"base64": %q, "name": "notes.md"}}`, base64.StdEncoding.EncodeToString([]byte("# Rhubarb\nnotes"))), `{"documents": [{"title": "notes.md", "content": "# Rhubarb\nnotes"}]}`)
	search("", `{"operation": "search", "query": "rhubarb"}`, "file")

	r.want(kind, "", `{"operation": "remember", "user": "What is a zeppelin?", "assistant": "An airship."}`, `{"stored": true}`)
	r.want(kind, "", `{"operation": "load_context", "query": "airship?"}`, `{"context": "[What is a zeppelin?]\nAn airship."}`)
	r.want(kind, `{"auto_capture_from_ai": false}`, `{"operation": "remember", "user": "q", "assistant": "a"}`, `{"stored": false}`)
}

func TestMemoryEntities_ExtractMergeDelete(t *testing.T) {
	t.Parallel()
	const kind = "ENTITY_MEMORY"
	r := newMemoryRig(t)
	out := r.want(kind, "", `{"operation": "extract", "content": "Ada Lovelace works at Analytical Engines Ltd. She lives in London."}`, `{"stored": true}`)
	var found []memory.Entity
	field(t, out, "entities", &found)
	types := map[string]string{}
	for _, e := range found {
		types[e.Name] = e.Type
	}
	if types["Ada Lovelace"] != "person" || types["Analytical Engines Ltd"] != "organization" || types["London"] != "location" {
		t.Errorf("entities: %v", types)
	}
	r.want(kind, "", `{"operation": "extract", "content": "王小明先生在北京大学工作。"}`, `{"stored": true}`)
	r.want(kind, "", `{"operation": "get", "name": "北京大学"}`, `{"entities": [{"name": "北京大学", "type": "organization"}]}`)
	r.want(kind, "", `{"operation": "get", "name": "ada  LOVELACE"}`, `{"entities": [{"name": "Ada Lovelace", "type": "person", "mentions": 1}], "relationships": [{"source_name": "Ada Lovelace", "type": "works_at", "target_name": "Analytical Engines Ltd"}],
		"entity_summary": "Ada Lovelace (person); works_at Analytical Engines Ltd"}`)
	r.want(kind, "", `{"operation": "search", "query": "lovelace"}`, `{"entities": [{"name": "Ada Lovelace"}]}`)

	// A model finds more, and what it is not sure of is not stored.
	r.model = func(p memory.Prompt) (string, error) {
		return "Here you are:\n```json\n" + `{"entities": [{"name": "Countess", "type": "person", "confidence": 0.9, "attributes": {"born": "1815"}}, {"name": "Ada Lovelace", "type": "person", "confidence": 0.95},
			{"name": "Doubt", "type": "concept", "confidence": 0.69}, {"name": "Ghost", "type": "spirit", "confidence": 1}], "relationships": [{"source": "Countess", "target": "Ada Lovelace", "type": "same_as", "confidence": 0.9}]}` + "\n```", nil
	}
	config := `{"llm_profile": "p"}`
	out = r.want(kind, config, `{"operation": "extract", "content": "the countess"}`, `{"entities": [{"name": "Countess", "attributes": {"born": "1815"}}, {"name": "Ada Lovelace", "mentions": 2, "confidence": 0.95}]}`)
	field(t, out, "entities", &found)
	r.want(kind, "", `{"operation": "get", "name": "Doubt"}`, `{"entities": []}`)
	r.want(kind, "", `{"operation": "get", "name": "Ghost"}`, `{"entities": []}`)
	r.want(kind, "", fmt.Sprintf(`{"operation": "merge", "ids": [%q, %q]}`, found[1].ID, found[0].ID), `{"entities": [{"name": "Ada Lovelace", "aliases": ["Countess"], "mentions": 3, "attributes": {"born": "1815"}}], "relationships": [{"type": "works_at"}]}`)
	r.want(kind, "", `{"operation": "get", "name": "countess"}`, `{"entities": [{"name": "Ada Lovelace"}]}`)
	r.want(kind, "", `{"operation": "load_context", "query": "who is the countess?"}`, `{"context": "Ada Lovelace (person); born: 1815; works_at Analytical Engines Ltd"}`)
	r.want(kind, "", fmt.Sprintf(`{"operation": "delete", "id": %q}`, found[1].ID), `{}`)
	r.want(kind, "", `{"operation": "get", "name": "countess"}`, `{"entities": [], "relationships": []}`)
	// A model that fails leaves the work to the rules.
	r.model = func(memory.Prompt) (string, error) { return "I cannot", nil }
	r.want(kind, config, `{"operation": "extract", "content": "Dr Who works at Tardis Inc."}`, `{"stored": true}`)
	if !slices.ContainsFunc(r.warnings, func(w string) bool { return strings.Contains(w, "rules take its place") }) {
		t.Errorf("warnings: %q", r.warnings)
	}
}

func TestMemoryKnowledge_ContradictionsAreMarked(t *testing.T) {
	t.Parallel()
	const kind = "KNOWLEDGE_BASE"
	r := newMemoryRig(t)
	fact := func(subject, predicate, object string, confidence float64) memory.Fact {
		t.Helper()
		out := r.want(kind, "", fmt.Sprintf(`{"operation": "store", "facts": [{"subject": %q, "predicate": %q, "object": %q, "confidence": %v, "domain": "business"}]}`, subject, predicate, object, confidence), `{"stored": true}`)
		var facts []memory.Fact
		field(t, out, "facts", &facts)
		return facts[0]
	}
	unsure := fact("the shop", "opens at", "8", 0.6)
	sure := fact("The Shop", "opens at", "9", 0.9)
	fact("the shop", "sells", "tea", 0.85)
	if !sure.Contradicted || !slices.Equal(sure.Contradicts, []string{unsure.ID}) {
		t.Errorf("not marked: %+v", sure)
	}
	r.want(kind, "", `{"operation": "query", "query": "when does the shop open? opens"}`, `{"facts": [{"object": "9", "contradicted": true}, {"object": "8", "contradicted": true}, {"object": "tea"}], "related_concepts": ["The Shop", "9", "the shop", "8", "tea"]}`)
	r.want(kind, "", `{"operation": "query", "query": "shop", "domain": "technical"}`, `{"facts": []}`)
	// What is not sure enough is kept, and told to nobody.
	r.want(kind, "", `{"operation": "load_context", "query": "shop opens"}`, `{"context": "- The Shop opens at 9 (0.90, contradicted)\n- the shop sells tea (0.85)"}`)
	// Said again it is as sure as the surest time.
	if again := fact("the shop", "opens at", "9", 0.2); again.Confidence != 0.9 || again.ID != sure.ID {
		t.Errorf("again: %+v", again)
	}
	// Changed to the same it contradicts nothing any more.
	r.want(kind, "", fmt.Sprintf(`{"operation": "update", "id": %q, "object": "9"}`, unsure.ID), `{"facts": [{"object": "9", "confidence": 0.9}]}`)
	r.want(kind, "", `{"operation": "query", "query": "opens"}`, `{"facts": [{"object": "9"}]}`)
	out := r.want(kind, "", `{"operation": "query", "query": "opens"}`, `{}`)
	if strings.Contains(string(out), "contradict") {
		t.Errorf("still marked: %s", out)
	}
	denied := fact("tea", "is not", "hot", 1)
	stated := fact("tea", "is", "hot", 0.8)
	if !stated.Contradicted || !slices.Equal(stated.Contradicts, []string{denied.ID}) {
		t.Errorf("a denial is not a contradiction: %+v", stated)
	}
	r.want(kind, "", fmt.Sprintf(`{"operation": "delete", "id": %q}`, denied.ID), `{"deleted": 1}`)
	out = r.want(kind, "", `{"operation": "query", "query": "hot"}`, `{"facts": [{"subject": "tea", "object": "hot"}]}`)
	if strings.Contains(string(out), "contradict") {
		t.Errorf("still marked after the other is gone: %s", out)
	}
	// Taken from a text, by rules.
	r.node = "rules"
	r.want(kind, "", `{"operation": "extract_and_store", "content": "The capital of France is Paris. Is it? 北京是中国的首都。"}`, `{"facts": [{"subject": "capital of France", "predicate": "is", "object": "Paris", "domain": "general"}, {"subject": "北京", "predicate": "是", "object": "中国的首都"}]}`)
	r.want(kind, "", `{"operation": "query", "query": "首都"}`, `{"facts": [{"subject": "北京"}]}`)
	r.model = func(memory.Prompt) (string, error) {
		return `{"facts": [{"subject": "a", "predicate": "b", "object": "c", "confidence": 0.5, "domain": "fancy"}, {"subject": "", "predicate": "b", "object": "c", "confidence": 1}]}`, nil
	}
	r.want(kind, `{"llm_profile": "p"}`, `{"operation": "store", "content": "x"}`, `{"facts": [{"subject": "a", "domain": "general", "confidence": 0.5}]}`)
}

func TestMemoryFacts_AreJSON(t *testing.T) {
	t.Parallel()
	// A record is read back as it was written, whatever is in it.
	r := newMemoryRig(t)
	text := "quote \" backslash \\ newline \n tab \t <b>&amp;</b> \u2028 控 🙂"
	raw, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	r.want("KEY_VALUE_STORE", "", `{"operation": "set", "key": "k", "value": `+string(raw)+`}`, `{}`)
	r.want("KEY_VALUE_STORE", "", `{"operation": "get", "key": "k"}`, `{"value": `+string(raw)+`}`)
	r.want("CONVERSATION_BUFFER", "", `{"operation": "add", "message": `+string(raw)+`}`, `{"messages": [{"content": `+string(raw)+`}]}`)
}

// What names its document is told with its source; a document that is stored anew takes the place of all of it that was there.
func TestMemoryVectors_Sources(t *testing.T) {
	t.Parallel()
	const kind = "VECTOR_DATABASE"
	r := newMemoryRig(t)
	chunk := func(n int, content string) string {
		return fmt.Sprintf(`{"id": "leave.md:%d", "content": %q, "metadata": {"document": "leave.md", "title": "Leave", "page": %d, "section": "S", "chunk": %d, "start": 5, "end": 9}}`, n, content, n+1, n)
	}
	r.want(kind, "", `{"operation": "store", "items": [`+chunk(1, "annual leave is 25 days")+`,`+chunk(2, "annual leave of trainees is 30 days")+`, {"id": "own", "content": "annual leave is nice"}]}`, `{"total_results": 3}`)
	const cite = "What follows comes from documents. Name the sources of your answer in square brackets as they stand here, such as [leave.md:1]. If the answer is not in them, say so."
	r.want(kind, `{"max_results": 2}`, `{"operation": "load_context", "query": "annual leave is 25 days"}`, `{"context": "`+cite+`\n- [leave.md:1] annual leave is 25 days\n- annual leave is nice",
		"sources": [{"id": "leave.md:1", "document": "leave.md", "title": "Leave", "page": 2, "section": "S", "chunk": 1, "start": 5, "end": 9}]}`)
	// What there is no room for is no source.
	r.want(kind, `{"max_results": 1, "max_context_chars": 30}`, `{"operation": "search", "query": "annual leave is 25 days"}`, `{"context": "- [leave.md:1] annual leave i…", "sources": [{"id": "leave.md:1"}]}`)

	again := `{"operation": "store", "replaces": {"document": "leave.md"}, "items": [` + chunk(1, "annual leave is 26 days") + `]}`
	r.once = "again"
	r.want(kind, "", again, `{"total_results": 1}`)
	r.once = "again" // the attempt after a crash changes nothing
	r.want(kind, "", again, `{"total_results": 1}`)
	r.once = ""
	out := r.want(kind, `{"similarity_threshold": 0}`, `{"operation": "search", "query": "annual leave"}`, `{"total_results": 2}`)
	if strings.Contains(string(out), "trainees") || !strings.Contains(string(out), "26 days") || !strings.Contains(string(out), "nice") {
		t.Errorf("left is %s", out)
	}
	r.refused(kind, "", `{"operation": "store", "replaces": [1], "items": ["x"]}`, fault.InvalidInput, "replaces")
	r.want(kind, `{"auto_capture_from_ai": false}`, `{"operation": "remember", "user": "a", "assistant": "b"}`, `{"stored": false}`)
}
