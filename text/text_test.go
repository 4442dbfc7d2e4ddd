package text_test

import (
	"strconv"
	"strings"
	"testing"

	"tandem/text"
)

func TestText_In(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		t        text.Text
		en, zh   string
		language string
	}{
		{text.Of("Yes"), "Yes", "是", "zh-CN"},
		{text.Of("Yes").For("to a warning"), "Yes", "确定", "zh_TW"},
		{text.Of("Reason: %s", "五 100%"), "Reason: 五 100%", "原因：五 100%", "ZH"},
		{text.Of("%s or %s", text.Of("a list"), "x"), "a list or x", "列表或x", "zh"},
		{text.Of("only one may be chosen, not %d").With(3), "only one may be chosen, not 3", "只能选择一项。", "zh"},
		{text.As("Yes %s"), "Yes %s", "Yes %s", "zh"},
		{text.Beside("Delay", "延迟"), "Delay", "延迟", "zh"},
		{text.Beside("Delay", ""), "Delay", "Delay", "zh"},
		{text.Of("Yes").Saying("en", "Yep"), "Yep", "是", "zh"},
		{text.Text{}, "", "", "zh"},
	} {
		if got := c.t.In("en"); got != c.en || c.t.String() != c.en || c.t.In("fr") != c.en || c.t.In("") != c.en {
			t.Errorf("in English %q; want %q", got, c.en)
		}
		if got := c.t.In(c.language); got != c.zh {
			t.Errorf("in Chinese %q; want %q", got, c.zh)
		}
	}
	if text.Beside("Delay", "").Words("zh") != "" || text.Of("Yes").Words("zh") != "是" || text.As("x").Words("zh") != "x" {
		t.Error("words are told that a text does not have, or not those that it has")
	}
	if !text.Of("Yes").Equal(text.Of("Yes")) || text.Of("Yes").Equal(text.As("Yes")) || !(text.Text{}).IsZero() || text.Of("Yes").IsZero() {
		t.Error("texts that say the same are not equal, or others are")
	}
	if got := strings.Join(text.Languages(), " "); got != "en zh" {
		t.Errorf("languages %s", got)
	}
}

func TestKnown(t *testing.T) {
	t.Parallel()
	for tag, want := range map[string]string{
		"zh": "zh", "zh-CN": "zh", "zh_TW": "zh", "ZH": "zh", "zho": "zh", "zh.UTF-8": "zh", "en": "en", "en-GB": "en", "English": "en",
		"fr": "", "": "", "C.UTF-8": "", "z": "", "tzh": "",
	} {
		if got, known := text.Known(tag); got != want || known != (want != "") {
			t.Errorf("%q: %q, %t; want %q", tag, got, known, want)
		}
	}
	for _, c := range []struct {
		want   string
		wishes []string
	}{
		{"en", nil}, {"en", []string{"fr"}}, {"zh", []string{"zh-CN"}}, {"zh", []string{"", "fr", "zh", "en"}}, {"en", []string{"en", "zh"}},
	} {
		if got := text.Language(c.wishes...); got != c.want {
			t.Errorf("%q: %q; want %q", c.wishes, got, c.want)
		}
	}
	for name, want := range map[string]string{
		"en": "", "zh": "", "": `"" is not known; use en or zh`, "zh-CN": `"zh-CN" is not known; use en or zh`, "ZH": `"ZH" is not known; use en or zh`,
	} {
		if err := text.CheckLanguage(name); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%q: %v; want %q", name, err, want)
		}
	}
	text.Languages()[0] = "fr"
	if text.Languages()[0] != "en" {
		t.Error("who asks for the languages can change them")
	}
}

func TestAccepted(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]string{
		"": "", "fr": "", "fr, *": "", "zh-CN,zh;q=0.9,en;q=0.8": "zh", "en;q=0.5, zh ; q=0.6": "zh", "fr, en;q=0.2, zh;q=0.1": "en", "en,zh": "en",
		"zh;q=0": "", "zh;q=much, en;q=0.1": "en", "zh;q=NaN": "", "zh;level=1": "zh",
	} {
		if got := text.Accepted(header); got != want {
			t.Errorf("%q: %q; want %q", header, got, want)
		}
	}
}

func TestClip(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ got, want string }{
		{text.Head("五六", 3), "五"}, {text.Head("五六", 5), "五"}, {text.Head("五六", 6), "五六"}, {text.Head("五", 0), ""}, {text.Head("五", 2), ""},
		{text.First("五六七", 2), "五六"}, {text.First("五", 2), "五"}, {text.First("五", 0), ""},
		{text.ClipBytes("五六", 4), "五…"}, {text.ClipBytes("五六", 6), "五六"}, {text.Clip("五六七", 2), "五六…"}, {text.Clip("五六", 2), "五六"},
		{text.Fit("五六七", 3), "五六七"}, {text.Fit("五六七八", 3), "五六…"}, {text.Fit("ab", 1), "…"}, {text.Fit("a\xff", 5), "a\ufffd"},
		{text.FitUTF16("a😀b", 4), "a😀b"}, {text.FitUTF16("a😀b", 3), "a…"}, {text.FitUTF16("a\xff\xfeb", 3), "a\ufffdb"},
		{text.FitUTF16As("a*b", 3, func(r rune) string { return strings.Replace(string(r), "*", `\*`, 1) }), "a…"}, {strconv.Itoa(text.UTF16("a😀五")), "4"},
		{text.FitIn("a<b", 5, func(r rune) (string, int) {
			if r == '<' {
				return "&lt;", 4
			}
			return string(r), 1
		}), "a…"},
	} {
		if c.got != c.want {
			t.Errorf("%q; want %q", c.got, c.want)
		}
	}
}
