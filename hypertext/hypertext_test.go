package hypertext_test

import (
	"strings"
	"testing"

	"tandem/hypertext"
)

func TestOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ html, page, mail string }{
		{"<p>a <b>b</b>&amp;c<p>d", "a b&c\nd", "a b&c\nd\n"},
		{"a<br><br>b", "a\nb", "a\n\nb\n"},
		{"<blockquote>x<blockquote>y</blockquote></blockquote>z", "x\ny\nz", "> x\n> > y\nz\n"},
		{"<ul><li>a<li>b</ul>", "a\nb", "- a\n- b\n"},
		{"<table><tr><td>1</td><td>2</td></tr></table>", "1 2", "1 2\n"},
		{"<pre>a\n  b</pre>", "a b", "a\n  b\n"},
		{"<main>a</main><aside>b</aside>", "a\nb", "a\nb\n"},
		{"<html><head><title>t</title><style>x{}</style></head><body>b", "t\nb", "b\n"},
		{"<head><title>t</title><body>b", "t\nb", "b\n"}, // the end of a head may be left out
		{"a<script>x</script><svg><g><svg>y</svg></g>z</svg>b<select><option>1</select>", "ab", "ab\n"},
		{"a<div style='Display: None'>h<span>u</div>b<p hidden>c</p>d", "a\nhu\nb\nc\nd", "a\nb\nd\n"},
		{"<script>never closed", "", ""},
		{"a\x00\xff<", "a\ufffd<", "a\x00\xff<\n"},
		{"", "", ""},
	} {
		if got := hypertext.OfPage([]byte(c.html), 100); got != c.page {
			t.Errorf("%q as a page: %q; want %q", c.html, got, c.page)
		}
		if got := hypertext.OfMail(c.html); got != c.mail {
			t.Errorf("%q as a mail: %q; want %q", c.html, got, c.mail)
		}
	}
	if got := hypertext.OfPage([]byte("<p>五六七"), 4); got != "五" {
		t.Errorf("cut to 4 bytes: %q", got)
	}
	if got := hypertext.OfMail(strings.Repeat("<blockquote>", 1000) + "a"); got != strings.Repeat("> ", 20)+"a\n" {
		t.Errorf("quoted a thousand times: %q", got)
	}
}
