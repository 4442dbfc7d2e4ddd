package sheet

import (
	"strings"
	"testing"
)

func TestFileName(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"a.txt": "a.txt", `C:\x\合同.pdf`: "合同.pdf", "../../etc/passwd": "passwd", "a\x00\nb": "ab", "..": "file", "": "file", strings.Repeat("é", 300): strings.Repeat("é", 100), "x\xff": "x",
	} {
		if got := FileName(given); got != want {
			t.Errorf("%q is %q, want %q", given, got, want)
		}
	}
}
