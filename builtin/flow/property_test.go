package flow_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tandem/node"
	"tandem/node/nodetest"
)

// items draws a list of small records with gaps, so that keys repeat and fields are missing.
func items(t *rapid.T, label string) []json.RawMessage {
	item := rapid.SampledFrom([]string{
		`{"k":1,"v":"a"}`, `{"k":1.0,"v":"b"}`, `{"k":2,"v":"a"}`, `{"k":"2","w":1}`, `{"k":null}`, `{"v":"c"}`, `{}`, `{"k":3,"v":null}`,
		`{"k":[1]}`, `{"k":true}`, `{"k":10,"v":"B"}`,
	})
	var list []json.RawMessage
	for _, text := range rapid.SliceOfN(item, 0, 12).Draw(t, label) {
		list = append(list, json.RawMessage(text))
	}
	return list
}

func list(raws []json.RawMessage) string {
	texts := make([]string, len(raws))
	for i, raw := range raws {
		texts[i] = string(raw)
	}
	return "[" + strings.Join(texts, ",") + "]"
}

// read decodes a part of an output.
func read[T any](t rapid.TB, raw json.RawMessage) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return v
}

func multiset(raws ...json.RawMessage) []string {
	var texts []string
	for _, raw := range raws {
		texts = append(texts, string(raw))
	}
	slices.Sort(texts)
	return texts
}

func TestFilter_KeptAndExcludedAreTheInput(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		input := items(r, "items")
		config := fmt.Sprintf(`{"filter_mode": %q, "null_handling": %q, "error_handling": %q, "logical_operator": %q, "max_results": %d, "sort_filtered_results": %v, "sort_field": "k",
			"conditions": [{"field": "k", "operator": %q, "value": 1}, {"field": "v", "operator": "not_equals", "value": "a"}]}`,
			rapid.SampledFrom([]string{"include", "exclude", "partition"}).Draw(r, "mode"), rapid.SampledFrom([]string{"include", "exclude", "treat_as_empty"}).Draw(r, "nulls"),
			rapid.SampledFrom([]string{"skip_invalid", "include_with_warning"}).Draw(r, "errors"), rapid.SampledFrom([]string{"AND", "OR", "NOT"}).Draw(r, "logic"),
			rapid.IntRange(-1, 4).Draw(r, "max"), rapid.Bool().Draw(r, "sort"), rapid.SampledFrom([]string{"equals", "greater_than", "less_or_equal"}).Draw(r, "operator"))
		got := kinds().Done(t, "FLOW.FILTER", nodetest.NewCall(t, config, `{"data": `+list(input)+`}`))
		out := read[struct {
			Kept     []json.RawMessage `json:"filtered_data"`
			Excluded []json.RawMessage `json:"excluded_data"`
		}](r, got["result"])
		if !slices.Equal(multiset(append(out.Kept, out.Excluded...)...), multiset(input...)) {
			r.Fatalf("kept %s, excluded %s of %s", out.Kept, out.Excluded, input)
		}
	})
}

func TestSort_IsAStablePermutationAndIdempotent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		input := items(r, "items")
		order := rapid.SampledFrom([]string{"asc", "desc"}).Draw(r, "order")
		config := fmt.Sprintf(`{"sort_field": "k", "order": %q, "nulls": %q}`, order, rapid.SampledFrom([]string{"first", "last"}).Draw(r, "nulls"))
		sort := func(in string) (string, []int) {
			out := read[struct {
				Sorted  json.RawMessage `json:"sorted_data"`
				Indices []int           `json:"original_indices"`
			}](r, kinds().Done(t, "FLOW.SORT", nodetest.NewCall(t, config, `{"data": `+in+`}`))["result"])
			return string(out.Sorted), out.Indices
		}
		once, indices := sort(list(input))
		if !slices.Equal(multiset(read[[]json.RawMessage](r, json.RawMessage(once))...), multiset(input...)) {
			r.Fatalf("%s is not a permutation of %s", once, input)
		}
		if twice, _ := sort(once); twice != once {
			r.Fatalf("sorting %s again gives %s", once, twice)
		}
		// Equal keys keep their order, and the keys are in the order asked for.
		type record struct {
			K any `json:"k"`
		}
		for i := 1; i < len(indices); i++ {
			a, b := read[record](r, input[indices[i-1]]).K, read[record](r, input[indices[i]]).K
			if fmt.Sprint(a) == fmt.Sprint(b) && fmt.Sprintf("%T", a) == fmt.Sprintf("%T", b) && indices[i-1] > indices[i] {
				r.Fatalf("items %d and %d have the key %v and changed places", indices[i], indices[i-1], a)
			}
			x, number := a.(float64)
			y, both := b.(float64)
			if number && both && (x > y) != (order == "desc") && x != y {
				r.Fatalf("%v stands before %v in %s order", x, y, order)
			}
		}
	})
}

func TestSplit_LosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		input := items(r, "items")
		config := `{"split_mode": "predicate", "predicate_paths": {"one": "item.k == 1", "some": "v", "two": "item.k == 2 || item.k == '2'"}}`
		got := kinds().Done(t, "FLOW.SPLIT", nodetest.NewCall(t, config, `{"data": `+list(input)+`}`))
		counts := read[struct {
			Counts map[string]int `json:"counts"`
		}](r, got["result"]).Counts
		var all []json.RawMessage
		for key, payload := range got {
			if key == "result" {
				continue
			}
			part := read[[]json.RawMessage](r, payload)
			if len(part) == 0 || counts[key] != len(part) {
				r.Fatalf("%q has %d items and is counted %d", key, len(part), counts[key])
			}
			all = append(all, part...)
		}
		if !slices.Equal(multiset(all...), multiset(input...)) {
			r.Fatalf("%s came out of %s", all, input)
		}
	})
}

func TestSplit_BatchesCoverTheList(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		input := items(r, "items")
		size := rapid.IntRange(1, 5).Draw(r, "size")
		if len(input) == 0 {
			return
		}
		var all []json.RawMessage
		_, err := drive(t, "FLOW.SPLIT", nodetest.NewCall(t, fmt.Sprintf(`{"batch_size": %d}`, size), `{"data": `+list(input)+`}`), func(_ int64, it node.Iteration) (json.RawMessage, error) {
			if size == 1 {
				all = append(all, it.Vars["item"])
			} else {
				all = append(all, read[[]json.RawMessage](r, it.Vars["item"])...)
			}
			return nil, nil
		})
		if err != nil || list(all) != list(input) {
			r.Fatalf("%v: %s came out of %s", err, all, input)
		}
	})
}

// naive versions of the strategies, written without any index.
func TestMerge_EqualsTheNaiveVersion(t *testing.T) {
	t.Parallel()
	key := func(r rapid.TB, item json.RawMessage) string {
		k := read[map[string]any](r, item)["k"]
		return fmt.Sprintf("%T %v", k, k)
	}
	rapid.Check(t, func(r *rapid.T) {
		strategy := rapid.SampledFrom([]string{"concatenate", "union", "by_key", "zip"}).Draw(r, "strategy")
		join := rapid.SampledFrom([]string{"outer", "inner", "left"}).Draw(r, "join")
		length := rapid.SampledFrom([]string{"longest", "shortest"}).Draw(r, "length")
		call := nodetest.NewCall(t, fmt.Sprintf(`{"merge_strategy": %q, "merge_key": "k", "join": %q, "zip_length": %q}`, strategy, join, length), "")
		var sources [][]json.RawMessage
		var all []json.RawMessage
		for i := range rapid.IntRange(1, 3).Draw(r, "sources") {
			source := items(r, "source")
			sources, all = append(sources, source), append(all, source...)
			call.Contributions = append(call.Contributions, node.Contribution{Node: fmt.Sprint(i), Payload: json.RawMessage(list(source))})
		}
		got := read[struct {
			Merged []json.RawMessage `json:"merged_data"`
		}](r, kinds().Done(t, "FLOW.MERGE", call)["result"]).Merged

		var want []string
		add := func(objects ...json.RawMessage) {
			merged := map[string]any{}
			for _, o := range objects {
				for k, v := range read[map[string]any](r, o) {
					merged[k] = v
				}
			}
			want = append(want, nodetest.Text(merged))
		}
		const none = "<nil> <nil>"
		seen := map[string]bool{}
		switch strategy {
		case "concatenate":
			for _, item := range all {
				add(item)
			}
		case "union":
			for _, item := range all {
				k := key(r, item)
				if k != none && seen[k] {
					continue
				}
				seen[k] = true
				last := item
				for _, other := range all {
					if k != none && key(r, other) == k {
						last = other
					}
				}
				add(last)
			}
		case "by_key":
			for _, item := range all {
				k := key(r, item)
				if k == none || seen[k] {
					continue
				}
				seen[k] = true
				var same []json.RawMessage
				in := make([]bool, len(sources))
				for i, source := range sources {
					for _, other := range source {
						if key(r, other) == k {
							same, in[i] = append(same, other), true
						}
					}
				}
				if join == "inner" && slices.Contains(in, false) || join == "left" && !in[0] {
					continue
				}
				add(same...)
			}
			for i, source := range sources {
				for _, item := range source {
					if key(r, item) == none && (join == "outer" || join == "left" && i == 0) {
						add(item)
					}
				}
			}
		case "zip":
			n := len(sources[0])
			for _, source := range sources {
				if length == "longest" {
					n = max(n, len(source))
				} else {
					n = min(n, len(source))
				}
			}
			for i := range n {
				var row []json.RawMessage
				short := false
				for _, source := range sources {
					if i < len(source) {
						row = append(row, source[i])
					} else {
						row, short = append(row, json.RawMessage("null")), true
					}
				}
				if short {
					want = append(want, nodetest.Text(read[any](r, json.RawMessage(list(row)))))
				} else {
					add(row...)
				}
			}
		}
		var texts []string
		for _, raw := range got {
			texts = append(texts, nodetest.Text(read[any](r, raw)))
		}
		if !slices.Equal(texts, want) {
			r.Fatalf("%s gives\n%v, want\n%v", strategy, texts, want)
		}
	})
}
