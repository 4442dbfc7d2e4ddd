package data_test

import (
	"testing"

	"tandem/fault"
	"tandem/node/nodetest"
)

func TestEditFields(t *testing.T) {
	t.Parallel()
	const record = `{"a": 1, "b": {"c": 2, "d": [10, 20, 30]}, "e": "x"}`
	kinds().Check(t, "ACTION.EDIT_FIELDS", []nodetest.Case{
		{Name: "Set", Config: `{"set": {"f": {"g": 1}, "b.c": 9, "b.d[1]": 21, "h.i": true}}`, Input: record,
			Exactly: `{"a": 1, "b": {"c": 9, "d": [10, 21, 30]}, "e": "x", "f": {"g": 1}, "h": {"i": true}}`},
		{Name: "Remove", Config: `{"remove": ["a", "b.c", "b.d[0]", "nowhere.at.all"]}`, Input: record, Exactly: `{"b": {"d": [20, 30]}, "e": "x"}`},
		{Name: "Rename", Config: `{"rename": {"a": "b.a", "e": "b.c"}}`, Input: record, Exactly: `{"b": {"c": "x", "d": [10, 20, 30], "a": 1}}`},
		{Name: "RenameWhatIsNotThere", Config: `{"rename": {"none": "n"}, "remove": ["b"]}`, Input: record, Exactly: `{"a": 1, "e": "x"}`},
		{Name: "Selected", Config: `{"include": "selected", "selected": ["b.c", "e", "none"]}`, Input: record, Exactly: `{"b": {"c": 2}, "e": "x"}`},
		{Name: "None", Config: `{"include": "none", "set": {"k": 1}, "expressions": {"s": "a + b.c"}}`, Input: record, Exactly: `{"k": 1, "s": 3}`},
		{Name: "InOrder", Config: `{"rename": {"a": "z"}, "remove": ["z"], "set": {"z": 5}, "expressions": {"z": "a + 1"}}`, Input: `{"a": 1}`, Exactly: `{"z": 2}`},
		{Name: "Each", Config: `{"each": true, "items_path": "rows", "expressions": {"n": "index", "double": "v * 2", "none": "w"}}`, Input: `{"rows": [{"v": 1}, {"v": 2, "w": 3}]}`,
			Exactly: `{"items": [{"v": 1, "n": 0, "double": 2, "none": null}, {"v": 2, "w": 3, "n": 1, "double": 4, "none": 3}], "count": 2}`},
		{Name: "BigNumbersStay", Config: `{"remove": ["x"]}`, Input: `{"n": 12345678901234567890, "x": 1}`, Exactly: `{"n": 12345678901234567890}`},
		{Name: "EachOfNoObjects", Config: `{"each": true, "set": {"a": 1}}`, Input: `{"items": [1]}`, Code: fault.InvalidInput, Part: "item 0"},
		{Name: "IntoAText", Config: `{"set": {"e.f": 1}}`, Input: record, Code: fault.InvalidInput, Part: "neither an object nor a list"},
		{Name: "BeyondTheList", Config: `{"set": {"b.d[3]": 1}}`, Input: record, Code: fault.InvalidInput, Part: "it has 3"},
		{Name: "NotAPath", Config: `{"remove": ["a[["]}`, Input: record, Code: fault.InvalidConfig, Part: "remove"},
		{Name: "RenameToANumber", Config: `{"rename": {"a": 1}}`, Input: record, Code: fault.InvalidConfig, Part: "rename.a"},
		{Name: "NotAnExpression", Config: `{"expressions": {"a": 1}}`, Input: record, Code: fault.InvalidConfig, Part: "expressions.a"},
	})
}
