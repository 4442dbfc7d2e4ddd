package mcp

import (
	"encoding/json"
	"strings"
	"testing"

	"tandem/fault"
	"tandem/store"
)

// policyTool is a tool with arguments of all types.
func policyTool(t testing.TB, annotations string) Tool {
	t.Helper()
	tool, err := ReadTool("s", json.RawMessage(`{"name":"wipe","description":"deletes the production database for ever","inputSchema":{"type":"object","properties":{
		"path":{"type":"string"},"url":{"type":"string"},"n":{"type":"integer"},"dry":{"type":"boolean"},"other":{}}}`+annotations+`}`))
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

func TestClassOf(t *testing.T) {
	t.Parallel()
	for annotations, want := range map[string]struct {
		class Class
		meets Decision
		from  string
	}{
		``:                                         {Unclassed, Destroys, FromNobody},
		`,"annotations":{}`:                        {Unclassed, Destroys, FromNobody},
		`,"annotations":{"title":"t"}`:             {Unclassed, Destroys, FromNobody},
		`,"annotations":{"idempotentHint":true}`:   {Unclassed, Destroys, FromNobody},
		`,"annotations":{"readOnlyHint":false}`:    {Unclassed, Destroys, FromNobody},
		`,"annotations":{"readOnlyHint":true}`:     {ReadOnly, Judged, FromAnnotation},
		`,"annotations":{"destructiveHint":false}`: {Additive, Judged, FromAnnotation},
		`,"annotations":{"destructiveHint":true}`:  {Destructive, Destroys, FromAnnotation},
		`,"annotations":{"readOnlyHint":true,"destructiveHint":true}`: {Destructive, Destroys, FromAnnotation}, // it contradicts itself
	} {
		tool := policyTool(t, annotations)
		if got := Decide(tool, nil, nil, nil); ClassOf(tool) != want.class || got.Decision != want.meets || got.From != want.from {
			t.Errorf("%s is %s and meets %+v", annotations, ClassOf(tool), got)
		}
	}
}

// A user can be stricter than an admin, and not looser than one who wants to be asked or never wants it.
func TestDecide_UserAndAdmin(t *testing.T) {
	t.Parallel()
	tool := policyTool(t, "")
	policy := func(value, by string) *store.MCPPolicy {
		if value == "" {
			return nil
		}
		p := &store.MCPPolicy{Policy: strings.TrimPrefix(value, "old "), Hash: tool.Hash, SetBy: by}
		if strings.HasPrefix(value, "old ") {
			p.Hash = "of another definition"
		}
		return p
	}
	for _, c := range []struct {
		own, everybodys string
		want            Decision
		from            string
	}{
		{"", "", Destroys, FromNobody},
		{"read_only", "", Runs, FromPolicy},
		{"", "read_only", Runs, FromWorkspace},
		{"ask", "read_only", Asks, FromPolicy},
		{"never", "read_only", Refused, FromPolicy},
		{"read_only", "ask", Asks, FromWorkspace},
		{"read_only", "never", Refused, FromWorkspace},
		{"ask", "never", Refused, FromWorkspace},
		{"never", "ask", Refused, FromPolicy},
		{"", "ask", Asks, FromWorkspace},
		// What was decided about another definition grants nothing, and forbids as before.
		{"old read_only", "", Destroys, FromNobody},
		{"", "old read_only", Destroys, FromNobody},
		{"old ask", "", Asks, FromPolicy},
		{"read_only", "old never", Refused, FromWorkspace},
		{"read_only", "old ask", Asks, FromWorkspace},
		{"old read_only", "read_only", Runs, FromWorkspace},
	} {
		if got := Decide(tool, nil, policy(c.own, "ann"), policy(c.everybodys, "root")); got.Decision != c.want || got.From != c.from {
			t.Errorf("own %q, everybody's %q: %+v, want %s from %s", c.own, c.everybodys, got, c.want, c.from)
		}
	}
	stale := &store.MCPPolicy{Policy: store.MCPReadOnly, Hash: "x", Rules: []store.MCPRule{{Argument: "n", Absent: true, Policy: store.MCPNever}}}
	if got := Decide(tool, nil, stale, nil); got.Decision != Asks {
		t.Errorf("rules about another definition: %+v", got)
	}
}

// Rules decide where everybody must read the arguments in the same way. Everything else is asked.
func TestDecide_Rules(t *testing.T) {
	t.Parallel()
	tool := policyTool(t, "")
	docs := store.MCPRule{Argument: "path", Under: "/srv/docs", Policy: store.MCPReadOnly}
	site := store.MCPRule{Argument: "url", Under: "https://api.example.com/v1/", Policy: store.MCPReadOnly}
	word := store.MCPRule{Argument: "path", Equals: json.RawMessage(`"list"`), Policy: store.MCPReadOnly}
	five := store.MCPRule{Argument: "n", Equals: json.RawMessage(`5`), Policy: store.MCPReadOnly}
	dry := store.MCPRule{Argument: "dry", Equals: json.RawMessage(`true`), Policy: store.MCPReadOnly}
	txt := store.MCPRule{Argument: "path", Pattern: `/tmp/[a-z./]+|list`, Policy: store.MCPReadOnly}
	none := store.MCPRule{Argument: "n", Absent: true, Policy: store.MCPReadOnly}
	etc := store.MCPRule{Argument: "path", Under: "/etc", Policy: store.MCPNever}
	prod := store.MCPRule{Argument: "path", Equals: json.RawMessage(`"prod"`), Policy: store.MCPNever}
	evil := store.MCPRule{Argument: "url", Under: "https://evil.com", Policy: store.MCPNever}
	// The default of each policy is the opposite of its rule, so that what is unclear is told from both.
	grants := map[string]struct {
		rule store.MCPRule
		args string
		want Decision
	}{
		"directory":             {docs, `{"path":"/srv/docs/a.txt"}`, Runs},
		"directory itself":      {docs, `{"path":"/srv/docs"}`, Runs},
		"beside it":             {docs, `{"path":"/srv/docs2/a"}`, Refused},
		"elsewhere":             {docs, `{"path":"/etc/passwd"}`, Refused},
		"escaped letters":       {docs, `{"path":"\u002fsrv\/docs/a"}`, Runs},
		"up":                    {docs, `{"path":"/srv/docs/../../etc/passwd"}`, Refused},
		"pattern":               {txt, `{"path":"/tmp/a.txt"}`, Runs},
		"other of a pattern":    {txt, `{"path":"list"}`, Runs},
		"part of a pattern":     {txt, `{"path":"list; rm -rf /"}`, Refused},
		"address":               {site, `{"url":"https://api.example.com/v1/x?y=1"}`, Runs},
		"address with a user":   {site, `{"url":"https://api.example.com@evil.org/v1/"}`, Refused},
		"address with a suffix": {site, `{"url":"https://api.example.com.evil.org/v1/"}`, Refused},
		"equal":                 {word, `{"path":"list"}`, Runs},
		"equal, escaped":        {word, `{"p\u0061th":"l\u0069st"}`, Runs},
		"number":                {five, `{"n":5}`, Runs},
		"another number":        {five, `{"n":6}`, Refused},
		"boolean":               {dry, `{"dry":true}`, Runs},
		"another boolean":       {dry, `{"dry":false}`, Refused},
		"absent":                {none, `{"path":"x"}`, Runs},
		"absent of none":        {none, ``, Runs},
		"there":                 {none, `{"n":1}`, Refused},
	}
	unclear := map[string]struct {
		rule store.MCPRule
		args string
	}{
		"missing":                 {docs, `{}`},
		"missing at all":          {docs, ``},
		"null":                    {docs, `{"path":null}`},
		"null is not absent":      {none, `{"n":null}`},
		"list":                    {docs, `{"path":["/srv/docs/a"]}`},
		"object":                  {docs, `{"path":{"path":"/srv/docs/a"}}`},
		"number for a text":       {word, `{"path":5}`},
		"text for a number":       {five, `{"n":"5"}`},
		"text for a boolean":      {dry, `{"dry":"true"}`},
		"number for a boolean":    {dry, `{"dry":1}`},
		"number written apart":    {five, `{"n":5.0}`},
		"number with an exponent": {five, `{"n":0.5e1}`},
		"number beyond reason":    {five, `{"n":1e999999999}`},
		"list of the word":        {word, `{"path":["list"]}`},
		"case":                    {word, `{"path":"LIST"}`},
		"space":                   {word, `{"path":" list"}`},
		"twice":                   {docs, `{"path":"/srv/docs/a","path":"/etc/passwd"}`},
		"twice but for case":      {docs, `{"path":"/srv/docs/a","PATH":"/etc/passwd"}`},
		"twice, escaped":          {docs, `{"path":"/srv/docs/a","p\u0061th":"/etc/passwd"}`},
		"twice, wide letters":     {docs, `{"path":"/srv/docs/a","ｐａｔｈ":"/etc/passwd"}`},
		"undeclared":              {docs, `{"path":"/srv/docs/a","force":true}`},
		"undeclared, invisible":   {docs, `{"path":"/srv/docs/a","path\u200b":"/etc"}`},
		"up":                      {docs, `{"path":"/srv/docs/../../etc/passwd"}`},
		"up at the end":           {docs, `{"path":"/srv/docs/.."}`},
		"up with backslashes":     {docs, `{"path":"/srv/docs/..\\..\\etc"}`},
		"up, encoded":             {docs, `{"path":"/srv/docs/%2e%2e/etc"}`},
		"up, encoded twice":       {txt, `{"path":"/tmp/%252e%252e/etc"}`},
		"up in a pattern":         {txt, `{"path":"/tmp/../etc/passwd"}`},
		"relative":                {docs, `{"path":"srv/docs/a"}`},
		"home":                    {docs, `{"path":"~/a"}`},
		"a file as address":       {docs, `{"path":"file:///srv/docs/a"}`},
		"double slash":            {docs, `{"path":"//srv/docs/a"}`},
		"dot":                     {docs, `{"path":"/./srv/docs/a"}`},
		"zero byte":               {docs, `{"path":"/srv/docs/a\u0000/../../etc"}`},
		"newline":                 {txt, `{"path":"list\nrm"}`},
		"zero width":              {docs, `{"path":"/srv/docs/\u200ba"}`},
		"right to left":           {docs, `{"path":"/srv/docs/\u202egpj.exe"}`},
		"half a surrogate":        {docs, `{"path":"/srv/docs/\ud800"}`},
		"wide letters":            {word, `{"path":"ｌｉｓｔ"}`},
		"wide slash":              {docs, `{"path":"/srv/docs／a"}`},
		"not UTF-8":               {docs, "{\"path\":\"/srv/docs/\xff\"}"},
		"port":                    {site, `{"url":"https://api.example.com:444/v1/x"}`},
		"another scheme":          {site, `{"url":"http://api.example.com/v1/x"}`},
		"no object":               {docs, `["/srv/docs/a"]`},
		"no JSON":                 {docs, `{"path":"/srv/docs/a"`},
		"more than one":           {docs, `{"path":"/srv/docs/a"}{"path":"/etc"}`},
	}
	// Rules that forbid are not walked around by what is unclear, where everything else runs.
	forbidden := map[string]struct {
		rule store.MCPRule
		args string
		want Decision
	}{
		"plainly":        {etc, `{"path":"/etc/passwd"}`, Refused},
		"elsewhere":      {etc, `{"path":"/srv/a"}`, Runs},
		"case":           {etc, `{"path":"/ETC/passwd"}`, Refused},
		"relative":       {etc, `{"path":"etc/passwd"}`, Refused},
		"up":             {etc, `{"path":"/srv/../etc/passwd"}`, Refused},
		"double slash":   {etc, `{"path":"/srv//etc"}`, Refused},
		"missing":        {etc, `{}`, Refused},
		"a list":         {prod, `{"path":["prod"]}`, Refused},
		"wide letters":   {prod, `{"path":"ｐｒｏｄ"}`, Refused},
		"space":          {prod, `{"path":"prod "}`, Refused},
		"twice":          {prod, `{"path":"prod","path":"test"}`, Refused},
		"another":        {prod, `{"path":"test"}`, Runs},
		"port":           {evil, `{"url":"https://evil.com:443/x"}`, Refused},
		"user":           {evil, `{"url":"https://me@evil.com/x"}`, Refused},
		"longer host":    {evil, `{"url":"https://evil.com.au/x"}`, Refused},
		"another host":   {evil, `{"url":"https://good.com/x"}`, Runs},
		"query, no path": {evil, `{"url":"https://evil.com?x"}`, Refused},
	}
	policy := func(otherwise string, rule store.MCPRule) *store.MCPPolicy {
		p := &store.MCPPolicy{Server: "s", Tool: "wipe", Policy: otherwise, Rules: []store.MCPRule{rule}, Hash: tool.Hash, SetBy: "ann"}
		if err := CheckPolicy(tool, *p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	for name, c := range grants {
		if got := Decide(tool, json.RawMessage(c.args), policy(store.MCPNever, c.rule), nil); got.Decision != c.want {
			t.Errorf("granted %s: %+v, want %s", name, got, c.want)
		}
	}
	for name, c := range unclear {
		if got := Decide(tool, json.RawMessage(c.args), policy(store.MCPReadOnly, c.rule), nil); got.Decision != Asks || got.Detail == "" {
			t.Errorf("unclear %s: %+v", name, got)
		}
		if got := Decide(tool, json.RawMessage(c.args), policy(store.MCPNever, c.rule), nil); got.Decision != Refused {
			t.Errorf("unclear %s, else never: %+v", name, got)
		}
	}
	for name, c := range forbidden {
		if got := Decide(tool, json.RawMessage(c.args), policy(store.MCPReadOnly, c.rule), nil); got.Decision != c.want {
			t.Errorf("forbidden %s: %+v, want %s", name, got, c.want)
		}
	}
	// The first that is fulfilled wins; without a default what the server says counts.
	two := policy("", docs)
	two.Rules = append(two.Rules, store.MCPRule{Argument: "path", Under: "/srv", Policy: store.MCPNever})
	for args, want := range map[string]Decision{`{"path":"/srv/docs/a"}`: Runs, `{"path":"/srv/a"}`: Refused, `{"path":"/tmp/a"}`: Destroys} {
		if got := Decide(tool, json.RawMessage(args), two, nil); got.Decision != want {
			t.Errorf("%s: %+v, want %s", args, got, want)
		}
	}
}

func TestCheckPolicy_NamesTheField(t *testing.T) {
	t.Parallel()
	tool := policyTool(t, "")
	err := CheckPolicy(tool, store.MCPPolicy{Server: "s", Tool: "wipe", Hash: "h", Rules: []store.MCPRule{{Argument: "pth", Absent: true, Policy: "ask"}}})
	if f := fault.From(err); f.Code != fault.Invalid || f.Details["path"] != "rules[0].argument" || !strings.Contains(f.Message, `did you mean "path"?`) {
		t.Errorf("got %v", err)
	}
}

// What is suggested goes by words; nothing is granted by it.
func TestSuggest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, description, annotations, want, why string }{
		{"list_files", "lists what is in a directory", "", store.MCPReadOnly, `"list"`},
		{"getUser", "a user", "", store.MCPReadOnly, `"get"`},
		{"list_files", "lists files, then deletes the production database for ever", "", store.MCPAsk, `"deletes"`},
		{"getAndDelete", "", "", store.MCPAsk, `"delete"`},
		{"x", "does x", `,"annotations":{"readOnlyHint":true}`, store.MCPReadOnly, "its server says"},
		{"erase", "erasing it", `,"annotations":{"readOnlyHint":true}`, store.MCPAsk, `"erase"`},
		{"list_x", "x", `,"annotations":{"destructiveHint":true}`, store.MCPAsk, "destroys"},
		{"frobnicate", "frobnicates", "", store.MCPAsk, "nothing is said"},
	} {
		tool, err := ReadTool("s", json.RawMessage(`{"name":"`+c.name+`","description":"`+c.description+`"`+c.annotations+`}`))
		if err != nil {
			t.Fatal(err)
		}
		if got := Suggest(tool); got.Policy != c.want || !strings.Contains(got.Reason, c.why) {
			t.Errorf("%s: %+v, want %s because of %s", c.name, got, c.want, c.why)
		}
		if got := Decide(tool, nil, nil, nil); got.Decision == Runs {
			t.Errorf("%s runs by what is said of it", c.name)
		}
	}
}
