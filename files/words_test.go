package files_test

import (
	"strings"
	"testing"

	"tandem/fault"
	"tandem/files"
	"tandem/text"
)

// TestErrors_Words: what is wrong with a path or a file is told in the language of the reader, with all that it is made of.
func TestErrors_Words(t *testing.T) {
	t.Parallel()
	clean := func(path string) error {
		_, err := files.Clean(path)
		return err
	}
	dir, err := files.New(t.TempDir()).Open("w")
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	_, missing := dir.Stat("none.txt")
	for name, c := range map[string]struct {
		err    error
		en, zh string
	}{
		"Empty":    {clean(""), `the path "" is empty`, `路径 "" 为空`},
		"Absolute": {clean("/a"), `the path "/a" is absolute; give a path inside the workspace, such as "reports/today.txt"`, `路径 "/a" 是绝对路径；请给出工作区内的路径，例如 "reports/today.txt"`},
		"Long":     {clean(strings.Repeat("a", 300)), `the path "` + strings.Repeat("a", 100) + `…" has a name of more than 255 bytes in it`, `路径 "` + strings.Repeat("a", 100) + `…" 中有超过 255 字节的名称`},
		"Missing":  {missing, `"none.txt" does not exist in the files of the workspace`, `"none.txt" 在工作区的文件中不存在`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := fault.From(c.err)
			if en, zh := text.ErrorIn(text.English, e), text.ErrorIn(text.Chinese, e); en != c.en || zh != c.zh {
				t.Errorf("it says %s and %s, want %s and %s", en, zh, c.en, c.zh)
			}
		})
	}
}
