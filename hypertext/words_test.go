package hypertext_test

import (
	"testing"

	"tandem/hypertext"
)

func TestWords(t *testing.T) {
	t.Parallel()
	for marked, want := range map[string]string{
		"<p>no</p>":                              "|no|",
		"<at>Bot</at> yes &amp; <b>go</b>":       "|| yes & |go|",
		"<blockquote>yes</blockquote>no":         "||no",
		"<q>a<q>yes</q>yes</q>no":                "||||no",
		"<Q x='>'>yes</Q>no":                     "||no",
		"<q>yes":                                 "|",
		"</q>no":                                 "|no",
		"1 < 2 &lt;b&gt;<!-- c --><br/>":         "1 < 2 <b>||",
		"":                                       "",
		"a<blockquote>b<at>c</at></blockquote>d": "a||||d",
	} {
		if got := hypertext.Words(marked, "|", "at", "q", "blockquote"); got != want {
			t.Errorf("%q: %q, want %q", marked, got, want)
		}
	}
}
