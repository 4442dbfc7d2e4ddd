package server

import (
	"net/http"
	"strings"
	"testing"

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
