package store_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"tandem/fault"
	"tandem/identity"
	"tandem/store"
	"tandem/text"
)

func TestPage_Limits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		page          store.Page
		limit, offset int
	}{
		{store.Page{}, 20, 0},
		{store.Page{Number: 1, Size: 5}, 5, 0},
		{store.Page{Number: 3, Size: 5}, 5, 10},
		{store.Page{Number: -4, Size: -5}, 20, 0},
		{store.Page{Number: 2, Size: 1 << 30}, 500, 500},
	} {
		if limit, offset := c.page.Limits(); limit != c.limit || offset != c.offset {
			t.Errorf("%+v: limit %d, offset %d; want %d, %d", c.page, limit, offset, c.limit, c.offset)
		}
	}
	if _, offset := (store.Page{Number: math.MaxInt, Size: 500}).Limits(); offset < 0 {
		t.Errorf("the last page of all begins at %d", offset)
	}
}

func TestScope(t *testing.T) {
	t.Parallel()
	if w, err := store.Scope(identity.Principal{Workspace: "a"}); w != "a" || err != nil {
		t.Errorf("a user: %q, %v", w, err)
	}
	for _, p := range []identity.Principal{{}, {User: "ann", Roles: []identity.Role{identity.Admin}}, identity.System("")} {
		if _, err := store.Scope(p); fault.CodeOf(err) != fault.Forbidden {
			t.Errorf("%+v: %v, want a refusal", p, err)
		}
	}
	if w, all, err := store.ScopeAll(identity.System("")); w != "" || !all || err != nil {
		t.Errorf("the system: %q, %v, %v", w, all, err)
	}
	if w, all, err := store.ScopeAll(identity.System("a")); w != "a" || all || err != nil {
		t.Errorf("the system for a workspace: %q, %v, %v", w, all, err)
	}
	if _, all, err := store.ScopeAll(identity.Principal{User: "ann"}); all || fault.CodeOf(err) != fault.Forbidden {
		t.Errorf("nobody: %v, %v", all, err)
	}
	if store.RequireSystem(identity.System("a")) != nil || fault.CodeOf(store.RequireSystem(identity.Principal{Workspace: "a"})) != fault.Forbidden {
		t.Error("only the system is the system")
	}
}

func TestKeyUsedError_IsAConflict(t *testing.T) {
	t.Parallel()
	for _, same := range []bool{true, false} {
		var err error = &store.KeyUsedError{IdempotencyKey: store.IdempotencyKey{Key: "k", Execution: "e"}, Same: same}
		err = fmt.Errorf("start: %w", err)
		if !errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound) || fault.CodeOf(err) != fault.Conflict {
			t.Errorf("same %v: %v", same, err)
		}
		if used, ok := errors.AsType[*store.KeyUsedError](err); !ok || used.Execution != "e" {
			t.Errorf("same %v: the execution is lost in %v", same, err)
		}
	}
}

// TestErrors_Words: what a store answers requests with is told in the language of the reader, with all that it is made of.
func TestErrors_Words(t *testing.T) {
	t.Parallel()
	policy := func(r store.MCPRule) error {
		return store.MCPPolicy{Server: "s", Tool: "t", Hash: "h", Policy: store.MCPAsk, Rules: []store.MCPRule{r}}.Check()
	}
	for name, c := range map[string]struct {
		err    error
		en, zh string
	}{
		"NotFound":   {store.NotFound("tool server", "a"), `there is no tool server "a" in this workspace`, `此工作区中没有工具服务器 "a"`},
		"Conflict":   {store.ErrConflict, "the record has changed in the meantime; read it again", "该记录在此期间已被修改；请重新读取"},
		"KeyStarted": {&store.KeyUsedError{IdempotencyKey: store.IdempotencyKey{Key: "k", Execution: "e"}, Same: true}, `idempotency key "k" has already started execution "e"`, `幂等键 "k" 已启动过执行 "e"`},
		"KeyUsed":    {&store.KeyUsedError{IdempotencyKey: store.IdempotencyKey{Key: "k"}}, `idempotency key "k" was used for another request; use a new key`, `幂等键 "k" 已用于另一个请求；请使用新的键`},
		"Delivery":   {&store.DeliveryKnownError{Delivery: store.TriggerDelivery{ID: "d", Node: "n"}}, `delivery "d" of node "n" was taken before`, `投递 "d"（节点 "n"）此前已接收`},
		"Superseded": {&store.SupersededError{Node: "n", Revision: 3}, `the trigger "n" of revision 3 is no longer in force`, `触发器 "n"（修订 3）已不再有效`},
		"Answered":   {&store.AnsweredError{By: "n#1"}, `the caller was answered by "n#1" already; a request has one answer`, `"n#1" 已答复调用方；一个请求只有一个答复`},
		"Policy":     {policy(store.MCPRule{Policy: store.MCPAsk}), `rules[0].argument: is missing; name an argument of the tool`, `rules[0].argument：缺少；请指定工具的一个参数`},
		"RuleLong":   {policy(store.MCPRule{Argument: "a", Policy: store.MCPAsk, Pattern: strings.Repeat("a", 501)}), `rules[0].pattern: is too long; 500 characters are taken`, `rules[0].pattern：太长；最多接受 500 个字符`},
		"RuleEquals": {policy(store.MCPRule{Argument: "a", Policy: store.MCPAsk, Equals: []byte(`[1`)}), `rules[0].equals: must be a text, a number, true or false`, `rules[0].equals：必须为文本、数字、true 或 false`},
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
