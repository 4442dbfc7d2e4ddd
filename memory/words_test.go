package memory

import (
	"encoding/json"
	"testing"

	"tandem/fault"
	"tandem/text"
)

// TestErrors_Words: what a memory refuses is told in the language of the reader, with the hint to what was meant.
func TestErrors_Words(t *testing.T) {
	t.Parallel()
	option := func(name string) error { return json.Unmarshal([]byte(`{"`+name+`":1}`), new(KeyValueOptions)) }
	for name, c := range map[string]struct {
		err    error
		en, zh string
	}{
		"OptionNear":    {option("ttll"), `options: there is no option "ttll"; did you mean "ttl"?`, `options：没有选项 "ttll"；您是不是想写 "ttl"？`},
		"OptionFar":     {option("speed"), `options: there is no option "speed"; there are ttl, if_absent, if_version, pattern`, `options：没有选项 "speed"；可用的有 ttl, if_absent, if_version, pattern`},
		"OperationNear": {unknown("ad", "add", "list"), `there is no operation "ad" here; there are "add", "list"; did you mean "add"?`, `此处没有操作 "ad"；可用的有 "add", "list"；您是不是想写 "add"？`},
		"OperationFar":  {unknown("x", "add", "list"), `there is no operation "x" here; there are "add", "list"`, `此处没有操作 "x"；可用的有 "add", "list"`},
		"Required":      {required("get", "key"), `"key" is required when operation is "get"`, `操作为 "get" 时 "key" 为必填项`},
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
