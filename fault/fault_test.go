package fault_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/fault"
)

// constants reads the codes that code.go declares, so that none can be forgotten in the table.
func constants(t *testing.T) []fault.Code {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "code.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var codes []fault.Code
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if typ, ok := spec.Type.(*ast.Ident); !ok || typ.Name != "Code" {
			return true
		}
		for _, v := range spec.Values {
			text, err := strconv.Unquote(v.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			codes = append(codes, fault.Code(text))
		}
		return true
	})
	return codes
}

func TestCodes_ListsEveryConstantOnce(t *testing.T) {
	t.Parallel()
	declared, listed := constants(t), fault.Codes()
	if len(declared) < 30 {
		t.Fatalf("found only %d declared codes", len(declared))
	}
	if diff := cmp.Diff(declared, listed); diff != "" {
		t.Errorf("declared and listed codes differ (-declared +listed):\n%s", diff)
	}
	if unique := slices.Compact(slices.Sorted(slices.Values(listed))); len(unique) != len(listed) {
		t.Errorf("%d codes, %d different ones", len(listed), len(unique))
	}
}

func TestCode_RetryableMeansTheWorldMayRecover(t *testing.T) {
	t.Parallel()
	var retryable []fault.Code
	for _, c := range fault.Codes() {
		if c.Retryable() {
			retryable = append(retryable, c)
		}
	}
	want := []fault.Code{fault.Busy, fault.NotReady, fault.RemoteError, fault.RateLimited, fault.NetworkError, fault.Timeout, fault.Shortage}
	if diff := cmp.Diff(want, retryable); diff != "" {
		t.Errorf("retryable codes (-want +got):\n%s", diff)
	}
}

func TestCode_Unknown(t *testing.T) {
	t.Parallel()
	if c := fault.Code("from_a_newer_version"); c.Class() != fault.ClassInternal || c.Retryable() {
		t.Errorf("unknown code: class %d, retryable %v; want internal and not retryable", c.Class(), c.Retryable())
	}
	if fault.NotFound.Class() != fault.ClassNotFound {
		t.Errorf("class of not_found is %d", fault.NotFound.Class())
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	if e := fault.New(fault.RateLimited, "slow down"); !e.Retryable || e.Error() != "rate_limited: slow down" {
		t.Errorf("got %q, retryable %v", e, e.Retryable)
	}
	if got := fault.New(fault.NotFound, "").Error(); got != "not_found" {
		t.Errorf("without a message: %q", got)
	}
}

func TestNewf_KeepsCauses(t *testing.T) {
	t.Parallel()
	first, second := errors.New("disk"), errors.New("net")
	one := fault.Newf(fault.Internal, "read %q: %w", "a", first)
	if !errors.Is(one, first) || one.Message != `read "a": disk` {
		t.Errorf("one cause: %v", one)
	}
	two := fault.Newf(fault.Internal, "%w and %w", first, second)
	if !errors.Is(two, first) || !errors.Is(two, second) {
		t.Errorf("two causes are not both found in %v", two)
	}
	if none := fault.Newf(fault.Internal, "plain %d", 1); none.Unwrap() != nil {
		t.Errorf("no cause: %v", none.Unwrap())
	}
}

func TestError_Is(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("start: %w", fault.New(fault.NotFound, "no workflow"))
	if !errors.Is(err, fault.New(fault.NotFound, "")) {
		t.Error("an error is not recognised by its code")
	}
	if errors.Is(err, fault.New(fault.Conflict, "")) {
		t.Error("an error of another code is recognised")
	}
}

func TestError_WithMethodsCopy(t *testing.T) {
	t.Parallel()
	base := fault.New(fault.Timeout, "late").With("after", 5)
	cause := errors.New("i/o timeout")
	changed := base.With("path", "a.b").WithCause(cause).Final()
	if len(base.Details) != 1 || base.Detail != "" || !base.Retryable || base.Unwrap() != nil {
		t.Errorf("the original changed: %+v", base)
	}
	if diff := cmp.Diff(map[string]any{"after": 5, "path": "a.b"}, changed.Details); diff != "" {
		t.Errorf("details (-want +got):\n%s", diff)
	}
	if changed.Retryable || changed.Detail != "i/o timeout" || !errors.Is(changed, cause) {
		t.Errorf("the copy: %+v", changed)
	}
	if kept := base.WithDetail("stack").WithCause(cause); kept.Detail != "stack" {
		t.Errorf("a cause replaced the detail: %q", kept.Detail)
	}
}

func TestCodeOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want fault.Code
	}{
		{nil, ""},
		{errors.New("x"), fault.Internal},
		{fmt.Errorf("a: %w", fault.New(fault.Conflict, "b")), fault.Conflict},
	} {
		if got := fault.CodeOf(c.err); got != c.want {
			t.Errorf("CodeOf(%v) = %q, want %q", c.err, got, c.want)
		}
	}
}

func TestFrom(t *testing.T) {
	t.Parallel()
	if fault.From(nil) != nil {
		t.Error("From(nil) is an error")
	}
	inner := fault.New(fault.Conflict, "busy")
	if got := fault.From(fmt.Errorf("a: %w", inner)); got != inner {
		t.Errorf("From found %v, want the error in the chain", got)
	}
	foreign := fault.From(errors.New("password=secret"))
	if foreign.Code != fault.Internal || strings.Contains(foreign.Message, "secret") || foreign.Detail != "password=secret" {
		t.Errorf("a foreign error must show its text to operators only: %+v", foreign)
	}
}

func TestError_PersistedForm(t *testing.T) {
	t.Parallel()
	e := fault.New(fault.RemoteError, "the service failed").With("status", "502").WithDetail("upstream a").Final()
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"error_code":"remote_error","error_message":"the service failed","error_details":{"status":"502"},"operator_detail":"upstream a","is_retryable":false}`
	if string(data) != want {
		t.Errorf("persisted %s, want %s", data, want)
	}
	var back fault.Error
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if again, _ := json.Marshal(&back); string(again) != want {
		t.Errorf("read and persisted again: %s", again)
	}
	for _, bad := range []string{`{}`, `[]`, `{"error_code":1}`} {
		if err := json.Unmarshal([]byte(bad), &back); err == nil {
			t.Errorf("%s was read as an error", bad)
		}
	}
}

// spoken are words in two languages.
type spoken struct{ en, zh string }

func (s spoken) In(language string) string {
	if language == "zh" {
		return s.zh
	}
	return s.en
}

func (s spoken) Stored() json.RawMessage { return json.RawMessage(`{"text":"` + s.en + `"}`) }

// What an error says in other languages is kept with it, and is nothing that workflows and clients see.
func TestError_Words(t *testing.T) {
	t.Parallel()
	e := fault.Say(fault.HILTimeout, spoken{"too late", "太晚了"}).With("n", 1).Final()
	if e.Message != "too late" || string(e.Words()) != `{"text":"too late"}` {
		t.Errorf("it says %q, and keeps %s", e.Message, e.Words())
	}
	data, err := json.Marshal(e)
	if want := `{"error_code":"hil_timeout","error_message":"too late","error_details":{"n":1},"is_retryable":false,"error_words":{"text":"too late"}}`; err != nil || string(data) != want {
		t.Errorf("persisted %s (%v), want %s", data, err, want)
	}
	var back fault.Error
	if err := json.Unmarshal(data, &back); err != nil || string(back.Words()) != string(e.Words()) {
		t.Errorf("read again, it keeps %s (%v)", back.Words(), err)
	}
	if public, err := json.Marshal(back.Public()); err != nil || strings.Contains(string(public), "error_words") {
		t.Errorf("the public form is %s (%v)", public, err)
	}
}

func TestError_PublicHidesOperatorDetail(t *testing.T) {
	t.Parallel()
	e := fault.New(fault.Internal, "sorry").WithCause(errors.New("canary"))
	p := e.Public()
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), "canary") || p.Unwrap() != nil {
		t.Errorf("the public form shows the detail: %s", data)
	}
	if e.Detail != "canary" {
		t.Error("the original lost its detail")
	}
}
