package data_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"tandem/fault"
	"tandem/llm"
	"tandem/node"
	"tandem/node/nodetest"
)

func TestTextSplitter(t *testing.T) {
	t.Parallel()
	chunk := func(n int, content, more string) string {
		title := ""
		if rest, ok := strings.CutPrefix(more, `"title": "T", `); ok {
			title, more = `"title": "T", `, rest
		}
		return fmt.Sprintf(`{"id": "d:%d", "content": %q, "metadata": {"document": "d", %s"chunk": %d, %s}}`, n, content, title, n, more)
	}
	all := func(chunks ...string) string {
		return fmt.Sprintf(`{"chunks": [%s], "count": %d, "document": "d"}`, strings.Join(chunks, ","), len(chunks))
	}
	kinds().Check(t, "ACTION.TEXT_SPLITTER", []nodetest.Case{
		{Name: "Sentences", Config: `{"chunk_size": 30, "overlap": 0}`, Input: `{"document": "d", "text": "One is really here. Two is there, too. End"}`,
			Exactly: all(chunk(1, "One is really here.", `"start": 0, "end": 19`), chunk(2, "Two is there, too. End", `"start": 20, "end": 42`))},
		{Name: "Paragraphs", Config: `{"chunk_size": 30, "overlap": 0}`, Input: `{"document": "d", "text": "A line. Another. And\n\nThe second one"}`,
			Exactly: all(chunk(1, "A line. Another. And", `"start": 0, "end": 20`), chunk(2, "The second one", `"start": 22, "end": 36`))},
		{Name: "Words", Config: `{"chunk_size": 20, "overlap": 10}`, Input: `{"document": "d", "text": "alpha beta gamma delta epsilon"}`,
			Exactly: all(chunk(1, "alpha beta gamma", `"start": 0, "end": 16`), chunk(2, "gamma delta epsilon", `"start": 11, "end": 30`))},
		{Name: "Chinese", Config: `{"chunk_size": 20, "overlap": 0, "unit": "tokens"}`, Input: `{"document": "d", "text": "` + strings.Repeat("一", 12) + "。" + strings.Repeat("二", 15) + `"}`,
			Exactly: all(chunk(1, strings.Repeat("一", 12)+"。", `"start": 0, "end": 13`), chunk(2, strings.Repeat("二", 15), `"start": 13, "end": 28`))},
		{Name: "Parts", Config: `{}`, Input: `{"document": "d", "title": "T", "text": "before page one page two", "metadata": {"lang": "en", "page": 9}, "parts": [{"start": 7, "end": 16, "page": 1}, {"start": 16, "end": 99, "page": 2, "section": "S"}]}`,
			Exactly: all(chunk(1, "before", `"title": "T", "start": 0, "end": 6, "lang": "en", "page": 9`), chunk(2, "page one", `"title": "T", "page": 1, "start": 7, "end": 15, "lang": "en"`),
				chunk(3, "page two", `"title": "T", "page": 2, "section": "S", "start": 16, "end": 24, "lang": "en"`))},
		{Name: "Rows", Config: `{"chunk_size": 20, "overlap": 0}`, Input: `{"document": "d", "text": "a: 1\nb: 2\nc: 333333\nd: 4", "parts": [{"start": 0, "end": 5, "row": 1}, {"start": 5, "end": 10, "row": 2}, {"start": 10, "end": 20, "row": 3}, {"start": 20, "end": 24, "row": 4}]}`,
			Exactly: all(chunk(1, "a: 1\nb: 2\nc: 333333", `"row": 1, "start": 0, "end": 19`), chunk(2, "d: 4", `"row": 4, "start": 20, "end": 24`))},
		{Name: "Nothing", Config: `{}`, Input: `{"text": " \n "}`, Exactly: `{"chunks": [], "count": 0, "document": "text"}`},
		{Name: "TooMuchOverlap", Config: `{"chunk_size": 100, "overlap": 51}`, Input: `{"text": "x"}`, Code: fault.InvalidConfig, Part: "half"},
		{Name: "TooMany", Config: `{"chunk_size": 20, "overlap": 10}`, Input: `{"text": "` + strings.Repeat("x", 250_000) + `"}`, Code: fault.TooLarge, Part: "20000"},
		{Name: "NoObject", Config: `{}`, Input: `{"text": "x", "metadata": 1}`, Code: fault.InvalidInput, Part: "metadata"},
	})
}

// Every chunk stands in the text where it says, is no larger than it may be, and nothing of the text is lost.
func TestTextSplitter_Property(t *testing.T) {
	t.Parallel()
	kind := kinds().Kind(t, "ACTION.TEXT_SPLITTER")
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune("ab. \n。一é")), 0, 400, -1).Draw(t, "text")
		size := rapid.IntRange(20, 60).Draw(t, "size")
		overlap := rapid.IntRange(0, size/2).Draw(t, "overlap")
		unit := rapid.SampledFrom([]string{"characters", "tokens"}).Draw(t, "unit")
		at := rapid.IntRange(0, utf8.RuneCountInString(text)).Draw(t, "part")
		input, err := json.Marshal(map[string]any{"text": text, "parts": []map[string]int{{"start": 0, "end": at, "page": 1}, {"start": at, "end": 1 << 30, "page": 2}}})
		if err != nil {
			t.Fatal(err)
		}
		out, err := kind.Run(t.Context(), &node.Call{Config: fmt.Appendf(nil, `{"chunk_size": %d, "overlap": %d, "unit": %q}`, size, overlap, unit), Input: input})
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Chunks []struct {
				Content  string
				Metadata struct{ Start, End, Page int }
			}
		}
		if err := json.Unmarshal(out.(node.Done)["result"], &got); err != nil {
			t.Fatal(err)
		}
		runes := []rune(text)
		covered := make([]bool, len(runes))
		for _, c := range got.Chunks {
			m := c.Metadata
			if string(runes[m.Start:m.End]) != c.Content || m.Page == 1 && m.End > at || m.Page == 2 && m.Start < at {
				t.Fatalf("%+v is not where it says", c)
			}
			if n := utf8.RuneCountInString(c.Content); unit == "characters" && n > size || unit == "tokens" && llm.Tokens(c.Content) > int64(size) {
				t.Fatalf("%+v has %d characters", c, n)
			}
			for i := m.Start; i < m.End; i++ {
				covered[i] = true
			}
		}
		for i, r := range runes {
			if !covered[i] && !unicode.IsSpace(r) {
				t.Fatalf("character %d of %q is in no chunk", i, text)
			}
		}
	})
}
