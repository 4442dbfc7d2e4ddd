package server

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"tandem/api"
	"tandem/fault"
	"tandem/identity"
	"tandem/route"
)

// reads is a call by an administrator who reads a language.
func (w *world) reads(language, method, path, body string) answer {
	w.t.Helper()
	return w.ask(w.tokens[identity.Admin], method, route.Prefix+path, strings.NewReader(body), func(r *http.Request) { r.Header.Set("Accept-Language", language) })
}

// TestRefusals_Missing: that a record is not there is told in the language of the reader, with the sort of the record.
func TestRefusals_Missing(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for name, c := range map[string]struct{ method, path, en, zh string }{
		"Workflow":    {"GET", "/workflows/none", `there is no workflow "none" in this workspace`, `此工作区中没有工作流 "none"`},
		"Execution":   {"GET", "/executions/none", `there is no execution "none" in this workspace`, `此工作区中没有执行 "none"`},
		"Interaction": {"GET", "/interactions/none", `there is no interaction "none" in this workspace`, `此工作区中没有交互 "none"`},
		"User":        {"GET", "/users/none", `there is no user "none" in this workspace`, `此工作区中没有用户 "none"`},
		"Template":    {"GET", "/node-templates/none", `there is no template "none" in this workspace`, `此工作区中没有模板 "none"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for language, want := range map[string]string{"en": c.en, "fr": c.en, "zh": c.zh, "zh-CN,en;q=0.5": c.zh} {
				if got := w.reads(language, c.method, c.path, "").problem(t, 404, fault.NotFound).Detail; got != want {
					t.Errorf("%s: it says %s, want %s", language, got, want)
				}
			}
		})
	}
}

// TestRefusals_Fields: what is wrong with the fields of a request is told in the language of the reader, in sum and field by field; to
// readers of English as ever.
func TestRefusals_Fields(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for name, c := range map[string]struct{ method, path, body, en, zh, field, enField, zhField string }{
		"OneField": {"POST", "/workflows/w/execute", `{"inputs":[1]}`, "inputs: an object was expected; write the inputs by name", "inputs：应为对象；请按名称写出各个输入",
			"inputs", "an object was expected; write the inputs by name", "应为对象；请按名称写出各个输入"},
		"Profile": {"POST", "/llm/profiles", `{"id":".","provider":"x","model":"m"}`, "id: an id has letters, digits, _, - and dots, at most 128 of them", "id：id 由字母、数字、_、- 和点组成，最多 128 个字符",
			"id", "an id has letters, digits, _, - and dots, at most 128 of them", "id 由字母、数字、_、- 和点组成，最多 128 个字符"},
		"Agent": {"POST", "/agents", `{"id":"a","name":"A","llm_profile":""}`, "llm_profile: is missing; name a profile of a model", "llm_profile：缺少；请指定一个模型配置",
			"llm_profile", "is missing; name a profile of a model", "缺少；请指定一个模型配置"},
		"Roles": {"POST", "/users", `{"name":"U","roles":["king"]}`, `roles: there is no role "king"; there are admin, editor, operator, approver and viewer`, `roles：没有角色 "king"；可用的有 admin, editor, operator, approver 和 viewer`,
			"roles", `there is no role "king"; there are admin, editor, operator, approver and viewer`, `没有角色 "king"；可用的有 admin, editor, operator, approver 和 viewer`},
		"Credential": {"POST", "/credentials", `{"name":"c","type":"slack_bot","data":{"tokn":"x"}}`, `credential of type "slack_bot": "token" is missing; "tokn" is not a field of "slack_bot"; did you mean "token"?`,
			`类型为 "slack_bot" 的凭据："token" 缺少；"tokn" 不是 "slack_bot" 的字段；您是不是想写 "token"？`, "data.token", `"token" is missing`, `"token" 缺少`},
		"Excerpt": {"POST", "/workflows/test", `{"definition":{"metadata":{"id":"w","name":"w"},"nodes":[]},"node":"n"}`, `node: the definition has no node "n"`, `node：定义中没有节点 "n"`,
			"node", `the definition has no node "n"`, `定义中没有节点 "n"`},
		"NoBody":    {"POST", "/users", "", "the request needs a body", "请求需要请求体", "", "", ""},
		"NoJSON":    {"POST", "/users", "{", "the body of the request cannot be read as JSON: ", "请求体无法作为 JSON 读取：", "", "", ""},
		"WrongType": {"POST", "/users", `{"name":1}`, "the request is not as it should be: name: ", "请求不符合要求：name：", "", "", ""},
		"Name":      {"POST", "/credentials", `{"name":" ","type":"http_auth","data":{"scheme":"bearer","token":"x"}}`, "name: a credential needs a name", "name：凭据需要名称", "name", "a credential needs a name", "凭据需要名称"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for language, want := range map[string][2]string{"en": {c.en, c.enField}, "zh": {c.zh, c.zhField}} {
				got := read[api.Fault](t, w.reads(language, c.method, c.path, c.body))
				if got.Detail != want[0] && (c.field != "" || !strings.HasPrefix(got.Detail, want[0])) {
					t.Errorf("%s: it says %s, want %s", language, got.Detail, want[0])
				}
				if c.field != "" && !slices.ContainsFunc(got.Errors, func(f api.FaultField) bool { return f.Path == c.field && f.Message == want[1] }) {
					t.Errorf("%s: it says %+v of the fields, want %s", language, got.Errors, want[1])
				}
			}
		})
	}
}
