package app

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/identity"
	"tandem/store"
)

const (
	// withoutBrowser says that the pages may go untested. It is for machines that cannot have a browser, and is loud.
	withoutBrowser = "TANDEM_TEST_NO_BROWSER"
	// shotsDir names a directory that pictures of the pages are put into, to look at; empty: none are made.
	shotsDir = "TANDEM_SHOTS"
	// browserFiles is the script that drives the browser, and what it needs.
	browserFiles = "testdata/browser"
)

// browserTools are a browser, and the packages that drive it. They are installed when they are missing.
func browserTools(t *testing.T) (chromium, modules string) {
	t.Helper()
	if os.Getenv(withoutBrowser) != "" {
		t.Skipf("NOTICE: %s is set: the response pages are NOT TESTED in a browser", withoutBrowser)
	}
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%s is not installed, and the pages are tested in a browser that it drives; install Node 20 or newer with npm (Debian: apt-get install nodejs npm), or set %s=1 to leave them untested", program, withoutBrowser)
		}
	}
	find := exec.CommandContext(t.Context(), "../scripts/chromium.sh")
	find.Stderr = os.Stderr
	out, err := find.Output()
	if err != nil {
		t.Fatalf("no browser: %v; install Chromium, run the tests as root on Debian, or set %s=1 to leave the pages untested", err, withoutBrowser)
	}
	return strings.TrimSpace(string(out)), browserModules(t)
}

// browserModules installs the packages once for all runs, beside other things that tests keep. Runs at the same time each install their
// own, and the first one that is done is kept.
func browserModules(t *testing.T) string {
	t.Helper()
	lock := fileText(t, filepath.Join(browserFiles, "package-lock.json"))
	kept := filepath.Join(browserCache(), fmt.Sprintf("browser-%x", sha256.Sum256(lock))[:24])
	if _, err := os.Stat(kept); err == nil {
		return kept
	}
	if err := os.MkdirAll(browserCache(), 0o755); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(browserCache(), "browser-new-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for _, name := range []string{"package.json", "package-lock.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), fileText(t, filepath.Join(browserFiles, name)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	install := exec.CommandContext(t.Context(), "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v: %s", err, out)
	}
	if err := os.Rename(dir, kept); err != nil {
		if _, there := os.Stat(kept); there != nil {
			t.Fatal(err)
		}
	}
	return kept
}

func fileText(t testing.TB, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// pageQuestion is a question that is answered on a page.
type pageQuestion struct {
	subtype, config string
	// answer is what the answer must have been, by path; nil: it is not answered to the end.
	answer map[string]string
}

// everyField is a form with each type of field.
const everyField = `[
	{"name":"name","label":"Full name","required":true,"validation":{"min_length":3}},
	{"name":"budget","label":"Budget in euro","type":"number","required":true,"validation":{"max":5000}},
	{"name":"mail","label":"Work mail","type":"email","required":true},
	{"name":"day","label":"First day","type":"date","required":true},
	{"name":"desk","label":"Desk","type":"select","required":true,"options":[{"value":"n","label":"North, by the window"},{"value":"s","label":"South"}]},
	{"name":"remote","label":"Works from home","type":"boolean","required":true},
	{"name":"paper","label":"Signed contract","type":"file","required":true},
	{"name":"code","label":"Cost centre","validation":{"pattern":"^[A-Z]{2}-[0-9]+$","message":"Two capital letters, a dash and a number, such as EU-42."}}
]`

const formSchema = `{"type":"object","required":["size","topics"],"properties":{
	"size":{"type":"string","title":"T-shirt","enum":["S","M","L"]},
	"guests":{"type":"integer","title":"Guests","description":"Besides yourself.","minimum":0,"maximum":3,"default":0},
	"vegan":{"type":"boolean","title":"Vegan menu"},
	"topics":{"type":"array","title":"What interests you","minItems":1,"items":{"enum":["Go","Databases","Design"]}},
	"words":{"type":"string","title":"Anything else","maxLength":2000}}}`

// pageQuestions are questions of every type. Those without an answer stay open, or are closed otherwise.
func pageQuestions() map[string]pageQuestion {
	approval := `"interaction_type":"approval",`
	review := func(scoring, more string, answer map[string]string) pageQuestion {
		return pageQuestion{"MANUAL_REVIEW", `"title":"Review of the release notes","description":"Read them as somebody would who has never seen the product.","reviewers":["ann"],"review_criteria":["Clear and complete","No secrets"],"scoring_system":"` + scoring + `"` + more, answer}
	}
	return map[string]pageQuestion{
		"approve": {"IN_APP_APPROVAL", approval + `"title":"Pay the invoice of Example & Sons?","description":"It came on Monday and is due on Friday.\nThe order was placed by the design team.","risk":"high","content":{"supplier":"Example & Sons <Ltd>","amount":"€ 12,480.00","invoice":"2027-0031","lines":[{"item":"Desks","count":6},{"item":"Lamps","count":12}]}`,
			map[string]string{"action": "approve", "notes": "Checked with <b>finance</b>.\nAll fine.", "user_id": "ann"}},
		"options": {"IN_APP_APPROVAL", approval + `"title":"The order is late","description":"What should happen with it?","risk":"medium","approval_options":[{"value":"ship","label":"Ship what is there","outcome":"confirmed"},{"value":"later","label":"Wait for the rest","outcome":"none"},{"value":"stop","label":"Cancel the order","outcome":"rejected"}]`,
			map[string]string{"action": "later"}},
		"keyboard": {"IN_APP_APPROVAL", approval + `"title":"Publish the page?"`, map[string]string{"action": "reject", "notes": "typed"}},
		"quorum":   {"IN_APP_APPROVAL", approval + `"title":"Open the vault?","approvers":["ann","ben"],"min_approvals":2`, nil},
		"twice":    {"IN_APP_APPROVAL", approval + `"title":"Once or twice?"`, map[string]string{"action": "approve"}},
		"ended":    {"IN_APP_APPROVAL", approval + `"title":"This is taken back"`, nil},
		"expired":  {"IN_APP_APPROVAL", approval + `"title":"This link is too old"`, nil},
		"long": {"IN_APP_APPROVAL", approval + `"title":"Delete ` + strings.Repeat("Donaudampfschifffahrts", 8) + `?","content":{"path":"/` + strings.Repeat("a_very_long_name", 20) + `","deep":{"a":{"b":{"c":["` + strings.Repeat("x", 300) + `"]}}}}`,
			map[string]string{"action": "reject"}},
		"form": {"FORM_SUBMISSION", `"title":"A new colleague","description":"We prepare the desk with this.","input_fields":` + everyField,
			map[string]string{"field_values.name": "Zoë 王", "field_values.budget": "1200.5", "field_values.mail": "zoe@example.org", "field_values.day": "2027-03-31", "field_values.desk": "n", "field_values.remote": "false", "field_values.paper.name": "contract.txt", "field_values.code": "EU-42"}},
		"schema": {"FORM_SUBMISSION", `"title":"Summer party","description":"Anybody may fill this in.","access":"public","form_schema":` + formSchema,
			map[string]string{"field_values.size": "M", "field_values.guests": "2", "field_values.vegan": "true", "field_values.topics": `["Go","Design"]`}},
		"one": {"IN_APP_APPROVAL", `"interaction_type":"selection","title":"Which hotel?","selection_options":[{"value":"h1","label":"Near the station"},{"value":"h2","label":"At the lake"},"none of them"]`,
			map[string]string{"selected_values": `["h2"]`}},
		"many": {"IN_APP_APPROVAL", `"interaction_type":"selection","title":"Who should get a copy?","allow_multiple":true,"selection_options":[{"value":"l","label":"Legal"},{"value":"f","label":"Finance"},{"value":"p","label":"Press"}]`,
			map[string]string{"selected_values": `["l","p"]`, "notes": "not finance"}},
		"chinese": {"IN_APP_APPROVAL", approval + `"title":"是否批准这笔差旅费用？","description":"申请人将于下周前往上海参加会议，费用包括机票与两晚住宿。","risk":"high","content":{"金额":"¥ 4,280","目的地":"上海","事由":"参加年度合作伙伴会议"}`,
			map[string]string{"action": "approve", "notes": "同意"}},
		"pass_fail": review("pass_fail", ``, map[string]string{"scores.Clear and complete": "true", "scores.No secrets": "false", "evidence.No secrets": "A key is on page 2."}),
		"numeric":   review("numeric_scale", `,"require_evidence":false,"score_range":{"min":1,"max":5}`, map[string]string{"scores.Clear and complete": "4", "scores.No secrets": "5", "notes": "good"}),
		"letter":    review("letter_grade", `,"require_evidence":false`, map[string]string{"scores.Clear and complete": "B", "scores.No secrets": "A"}),
		"checklist": review("checklist", `,"require_evidence":false`, map[string]string{"scores.Clear and complete": "true", "scores.No secrets": "false"}),
		"custom":    review("custom", `,"require_evidence":false,"score_range":{"min":0,"max":100},"passing_threshold":60`, map[string]string{"scores.Clear and complete": "77.5", "scores.No secrets": "100"}),
		"tool":      {answer: map[string]string{"approved": "true"}},
	}
}

// pageFlow is a workflow that asks some of them at once.
func pageFlow(t testing.TB, id string, questions map[string]pageQuestion, names ...string) string {
	t.Helper()
	nodes := []any{map[string]any{"id": "start", "description": "d", "type": "TRIGGER", "subtype": "MANUAL"}}
	connections := []any{}
	for _, id := range names {
		q := questions[id]
		config := `{` + q.config
		if !strings.Contains(config, `"reviewers"`) && !strings.Contains(config, `"approvers"`) {
			config += `,"approvers":["ann"]`
		}
		nodes = append(nodes, map[string]any{"id": id, "description": "d", "type": "HUMAN_IN_THE_LOOP", "subtype": q.subtype, "configurations": json.RawMessage(config + `}`)})
		connections = append(connections, map[string]string{"from_node": "start", "to_node": id})
	}
	raw, err := json.Marshal(map[string]any{
		"metadata": map[string]string{"id": id, "name": "Office matters", "description": "d"}, "nodes": nodes, "connections": connections,
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// toolQuestion lets a model want to call a tool, which somebody has to approve.
func (x *site) toolQuestion(t *testing.T) api.Interaction {
	t.Helper()
	model := newModelService(t, func(r chatRequest, _ <-chan struct{}) chatReply {
		if slices.ContainsFunc(r.Messages, func(m chatMessage) bool { return m.Role == "tool" }) {
			return chatReply{text: []string{"done"}}
		}
		return chatReply{calls: []chatCall{chatCallOf(0, "http_request", `{"method":"POST","url":"`+newCounted(t).URL+`/pay","body":{"amount":250,"to":"Example & Sons","note":"the <second> half"}}`)}}
	})
	x.saveProfile(t, model.profile("m"))
	x.save(t, agentFlow(`{user_prompt: go, profileId: m, tool_approval: always}`, `web`, httpTool("web", ``)))
	return x.opens(t, x.execute(t, "talk", api.ExecuteRequest{}), 1)[0]
}

func (x *site) linkTo(t testing.TB, id, recipient string) string {
	t.Helper()
	who := strings.TrimPrefix(recipient, "user:") // nobody else is shown it
	if recipient == "anyone" {
		who = "admin"
	}
	return want[api.Link](t, x.call(t, who, "POST", "/interactions/"+id+"/link", map[string]string{"recipient": recipient}), http.StatusOK).URL
}

// expire lets a link of a question have been made too long ago.
func (x *site) expire(t testing.TB, id string) string {
	t.Helper()
	secret, system := identity.NewSecret(), identity.System("default")
	l := store.Link{Hash: identity.HashSecret(secret), Workspace: "default", Interaction: id, Recipient: "user:ann", Created: 1, Expires: 2}
	if err := x.stores.Interactions.Change(t.Context(), system, store.InteractionChange{Interaction: x.interaction(t, id), Links: []store.Link{l}}); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(x.url, "/api/v1") + "/respond/" + secret
}

// The pages by which people answer are driven in a real browser without scripts, as a person who gets a link does: every type of question, every
// mistake, two languages, phones, the dark, the keyboard alone. The script in testdata looks at the pages, and here is seen what the
// answers have become.
func TestRespondBrowser(t *testing.T) {
	t.Parallel()
	chromium, modules := browserTools(t)
	x, log := openForPeople(t)
	x.addUser(t, "default", "ann", identity.Approver)
	x.addUser(t, "default", "ben", identity.Approver)
	questions := pageQuestions()
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(questions)), func(name string) bool { return name == "tool" || name == "ended" })
	x.save(t, pageFlow(t, "pages", questions, names...))
	x.save(t, pageFlow(t, "ended", questions, "ended")) // what takes it back ends all of its execution
	asked := append(x.opens(t, x.execute(t, "pages", api.ExecuteRequest{}), len(names)), x.opens(t, x.execute(t, "ended", api.ExecuteRequest{}), 1)...)
	ids, links := map[string]string{}, map[string]string{}
	for _, i := range asked {
		ids[i.NodeID] = i.ID
		switch i.NodeID {
		case "schema":
			links[i.NodeID] = x.linkTo(t, i.ID, "anyone")
		case "expired":
			links[i.NodeID] = x.expire(t, i.ID)
		default:
			links[i.NodeID] = x.linkTo(t, i.ID, "ann")
		}
	}
	tool := x.toolQuestion(t)
	ids["tool"], links["tool"] = tool.ID, x.linkTo(t, tool.ID, "user:operator")
	want[api.Interaction](t, x.call(t, "admin", "POST", "/interactions/"+ids["ended"]+"/cancel", `{"reason":"no longer needed"}`), http.StatusOK)

	for name, failed := range runBrowser(t, modules, map[string]any{"chromium": chromium, "links": links, "shots": os.Getenv(shotsDir), "files": t.TempDir(), "long": long()}) {
		t.Run(name, func(t *testing.T) {
			if failed != "" {
				t.Error(failed)
			}
		})
	}
	for name, q := range questions {
		if q.answer == nil {
			continue
		}
		i := x.interaction(t, ids[name])
		if i.Status != store.InteractionCompleted {
			t.Errorf("%s is %s", name, i.Status)
		}
		for path, value := range q.answer {
			if got := gjson.GetBytes(i.Response, path).String(); got != value {
				t.Errorf("%s: %s is %q, want %q, in %s", name, path, got, value, i.Response)
			}
		}
	}
	if i := x.interaction(t, ids["quorum"]); i.Status != store.InteractionPending {
		t.Errorf("one of two has approved, and it is %s", i.Status)
	}
	x.readPaper(t, ids["form"])
	for name, link := range links {
		if strings.Contains(log.String(), link[strings.LastIndexByte(link, '/')+1:]) {
			t.Errorf("the secret of the link of %s is in the log", name)
		}
	}
}

// readPaper looks at the file that came with the form.
func (x *site) readPaper(t *testing.T, id string) {
	t.Helper()
	content, _, err := x.stores.Blobs.Get(t.Context(), identity.System("default"), gjson.GetBytes(x.interaction(t, id).Response, "field_values.paper.blob").String())
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	if text, err := io.ReadAll(content); err != nil || string(text) != "signed: 王" {
		t.Errorf("the file has %q (%v)", text, err)
	}
}

// runBrowser runs the script and returns the checks it made, each with what was wrong.
func runBrowser(t *testing.T, modules string, with any) map[string]string {
	t.Helper()
	raw, err := json.Marshal(with)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	script := exec.CommandContext(ctx, "node", filepath.Join(browserFiles, "respond.mjs"), modules)
	script.Stdin = bytes.NewReader(raw)
	script.Stderr = os.Stderr
	out, err := script.Output()
	if err != nil {
		t.Fatalf("the script: %v: %s", err, out)
	}
	checks := map[string]string{}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		var check struct {
			Name, Error string
			Seconds     float64
		}
		if err := json.Unmarshal(lines.Bytes(), &check); err != nil || check.Name == "" {
			t.Fatalf("the script says %q (%v)", lines.Text(), err)
		}
		checks[check.Name] = check.Error
		t.Logf("%s took %.1f s", check.Name, check.Seconds)
	}
	if len(checks) < 12 {
		t.Fatalf("the script made %d checks only: %v", len(checks), checks)
	}
	return checks
}

// browserCache is where the packages that drive the browser are kept.
func browserCache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "tandem-tests")
}
