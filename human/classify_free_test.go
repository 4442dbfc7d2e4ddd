package human

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"unicode"
)

// free is a reply of somebody who does not know how replies are read, and what a careful colleague takes it for.
type free struct {
	Text string `json:"text"`
	Want string `json:"want"`
}

func readFree(t *testing.T, name string) []free {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var out []free
	lines := bufio.NewScanner(bytes.NewReader(raw))
	for lines.Scan() {
		var f free
		dec := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&f); err != nil {
			t.Fatalf("%s, line %d: %v", name, len(out)+1, err)
		}
		out = append(out, f)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// freely asks what the replies of a free corpus answer. They are about many things, so the question names none.
func (f free) freely(title string) Text {
	language := "en"
	for _, r := range f.Text {
		if unicode.Is(unicode.Han, r) {
			language = "zh"
		}
	}
	x := replyTo(language, f.Text)
	x.Request.Title, x.Request.Description = title, ""
	return x
}

// TestClassify_Free reads what people write who do not know the rules: no decision may be a false one, and nine of ten have to be found.
func TestClassify_Free(t *testing.T) {
	t.Parallel()
	means := map[string]string{Confirmed: "approve", Rejected: "reject", "": "unclear"}
	for name, titles := range map[string][]string{"replies_free.jsonl": {"", "Do you approve?", "请审批"}, "replies_more.jsonl": {""}} {
		corpus := readFree(t, name)
		for _, title := range titles {
			all, found := map[string]int{}, map[string]int{}
			for _, f := range corpus {
				j := Classify(f.freely(title))
				got := means[j.Classification]
				all[f.Want]++
				switch got {
				case f.Want:
					found[f.Want]++
				case "unclear":
				default:
					t.Errorf("%s, %q: false %s (%s) of %q: %s", name, title, got, f.Want, f.Text, j.Reasoning)
				}
			}
			for _, want := range []string{"approve", "reject"} {
				if all[want] == 0 || found[want]*10 < all[want]*9 {
					t.Errorf("%s, %q: %d of %d replies that %s are found, want nine of ten", name, title, found[want], all[want], want)
				}
			}
		}
	}
}
