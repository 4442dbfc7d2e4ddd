package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tandem/fault"
	"tandem/text"
	"tandem/validation"
)

// TestErrors_Words: what people at a terminal are refused with is told in their language, with all that it is made of.
func TestErrors_Words(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "list.yaml")
	if err := os.WriteFile(file, []byte("[]"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, nameless := readNamed("-", strings.NewReader("{}"), text.Of("an agent"), "{id: a}")
	_, unreadable := validation.ReadFile(dir, nil)
	for name, c := range map[string]struct {
		err    error
		en, zh string
	}{
		"Near":     {second(NodeKind("FLOW.IFF")), `no kind "FLOW.IFF" can be run here; did you mean "FLOW.IF"?`, `此处无法运行类型 "FLOW.IFF"；您是不是想写 "FLOW.IF"？`},
		"Far":      {second(NodeKind("x")), `no kind "x" can be run here; "tandem nodes" lists those that can`, `此处无法运行类型 "x"；"tandem nodes" 可列出能运行的类型`},
		"Program":  {second(ParseScripts("none", "x=y")), `command "x": the path "y" must be absolute`, `命令 "x"：路径 "y" 必须为绝对路径`},
		"File":     {second(profileID(dir)), dir + ": cannot read the file: it is a directory; name a file", dir + "：无法读取文件：这是目录；请指定文件"},
		"Missing":  {second(profileID(file + "x")), file + "x: cannot read the file: no such file or directory", file + "x：无法读取文件：no such file or directory"},
		"Document": {nameless, "an agent from standard input needs an id", "来自标准输入的智能体需要 id"},
		"Flags": {(&Connection{}).follows(Run{Dir: "d", Flags: []string{"--a", "--b"}}),
			`a server has data directory "d" open and runs this, with the options that it was started with: leave out --a and --b, start the server with it, or name another directory with --data`,
			`服务器已打开数据目录 "d"，并按其启动时的选项运行：请省略 --a 和 --b，以该选项启动服务器，或用 --data 指定其他目录`},
		"Problem": {fault.Newf(fault.Invalid, "the workflow cannot be used: %s", unreadable.Says()),
			"the workflow cannot be used: cannot read the file: it is a directory; name a file", "无法使用该工作流：无法读取文件：这是目录；请指定文件"},
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

func second[T any](_ T, err error) error { return err }
