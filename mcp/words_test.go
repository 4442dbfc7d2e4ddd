package mcp

import (
	"testing"
	"time"

	"tandem/fault"
	"tandem/store"
	"tandem/text"
)

// TestErrors_Words: why a tool server or its tool is of no use is told in the language of the reader, without the secrets in it.
func TestErrors_Words(t *testing.T) {
	t.Parallel()
	tool := Tool{Name: "t", InputSchema: []byte(`{"properties":{"path":{}}}`)}
	policy := store.MCPPolicy{Server: "s", Tool: "t", Hash: "h", Policy: store.MCPAsk, Rules: []store.MCPRule{{Argument: "pat", Policy: store.MCPAsk, Absent: true}}}
	pool := &Pool{options: Options{Redact: func(_, said string) string {
		if said == "服务器拒绝了请求：geheim" || said == "the server refused: geheim" {
			return said[:len(said)-len("geheim")] + "***"
		}
		return said
	}}}
	for name, c := range map[string]struct {
		err    error
		en, zh string
	}{
		"Silent": {(&Error{Kind: Timeout, Server: "s", Message: notReady(time.Minute)}).Fault(),
			`tool server "s": the server did not answer within 1m0s of its start; if it needs longer, set its timeout_seconds to more than 60, which its start may then take too`,
			`工具服务器 "s"：服务器启动后在 1m0s 内没有答复；如果需要更长时间，请将其 timeout_seconds 设为大于 60，启动也会采用该时限`},
		"Never": {NotAllowedBy("s", "t", Verdict{By: "ann", From: FromWorkspace, Detail: "by the argument a"}).Fault(),
			`tool server "s": the tool is not allowed: ann has set the policy never for it in this workspace (by the argument a); do without it`,
			`工具服务器 "s"：不允许使用该工具：ann 已在此工作区将其策略设为 never（by the argument a）；请不使用它`},
		"Secret": {pool.clean("w", &Error{Kind: Protocol, Server: "s", Message: text.Of("the server refused: %s", "geheim")}).(*Error).Fault(),
			`tool server "s": the server refused: ***`, `工具服务器 "s"：服务器拒绝了请求：***`},
		"Policy": {inPolicy("policies.t", CheckPolicy(tool, policy)), `policies.t.rules[0].argument: the tool "t" declares no argument "pat"; did you mean "path"?`,
			`policies.t.rules[0].argument：工具 "t" 没有声明参数 "pat"；您是不是想写 "path"？`},
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
