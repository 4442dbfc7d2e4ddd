package app

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"tandem/engine"
	"tandem/host"
)

// A result over 32 KiB is kept beside the journal. Who waits for it gets all of it all the same.
func TestWholeResults_Webhook(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	pass := func(id, params string) string {
		return `,{"id":"` + id + `","name":"` + id + `","description":"d","type":"CALL","subtype":"EMPTY","configurations":{"pass_through":true},"input_params":` + params + `}`
	}
	to := func(to string) string { return `{"from_node":"hook","to_node":"` + to + `"}` }
	long := strings.Repeat("é<", host.MaxInline)
	hooked := func(id, said, format string) answer {
		return x.hooked(t, "POST", id+"/in", `{"text":"`+said+`"}`, "Idempotency-Key", "once "+format)
	}
	for _, format := range []string{"json", "text", "html"} {
		id := "one_" + format
		x.deploys(t, id, hookFlow(id, `{"webhook_path":"/in","response_mode":"sync","response_format":"`+format+`"}`, pass("end", `{"`+format+`":"{{body.text}}"}`), to("end")))
		for _, round := range []string{"at once", "again"} { // the second time it is read from the journal
			a := hooked(id, long, format)
			got := string(a.body)
			if format == "json" {
				got = gjson.GetBytes(a.body, format).Str
			}
			if a.status != http.StatusOK || got != long {
				t.Errorf("%s %s: %d, %d bytes instead of %d: %.100s", format, round, a.status, len(got), len(long), a.body)
			}
		}
	}
	x.deploys(t, "two", hookFlow("two", `{"webhook_path":"/in","response_mode":"sync"}`, pass("a", `{"a":"{{body.text}}"}`)+pass("b", `{"b":1}`), to("a")+","+to("b")))
	a := hooked("two", long, "")
	if got := gjson.GetBytes(a.body, "a.a").Str; a.status != http.StatusOK || got != long || gjson.GetBytes(a.body, "b.b").Int() != 1 {
		t.Errorf("two outputs: %d %.100s", a.status, a.body)
	}

	// What only looks like the name of a large value is what it is: nobody gets at a value by naming it.
	known := string(x.read(t, a.header.Get("X-Tandem-Execution")).Outputs["a"])
	if !strings.Contains(known, "$blob") {
		t.Fatalf("the API tells it as %.100s", known)
	}
	x.deploys(t, "echo", hookFlow("echo", `{"webhook_path":"/in","response_mode":"sync"}`, pass("end", `{"$blob":"{{body.$blob}}","size":1}`), to("end")))
	a = x.hooked(t, "POST", "echo/in", known)
	if a.status != http.StatusOK || len(a.body) > 1000 || gjson.GetBytes(a.body, "$blob").Str != gjson.Get(known, "$blob").Str {
		t.Errorf("a made-up name: %d %.300s", a.status, a.body)
	}

	// More than is sent is refused, and the execution stays as it ended.
	nodes, links := "", []string{}
	for _, id := range []string{"a", "b", "c", "d"} {
		nodes, links = nodes+pass(id, `{"x":"{{body.text}}"}`), append(links, to(id))
	}
	x.deploys(t, "much", hookFlow("much", `{"webhook_path":"/in","response_mode":"sync"}`, nodes, strings.Join(links, ",")))
	a = x.hooked(t, "POST", "much/in", `{"text":"`+strings.Repeat("x", 1<<20)+`"}`)
	same(t, fmt.Sprint(a.status, len(a.body) > 4<<20), "200 true")
	a = x.hooked(t, "POST", "much/in", `{"text":"`+strings.Repeat("x", 3<<20)+`"}`)
	refused(t, a, http.StatusInternalServerError, "too_large")
	if !strings.Contains(string(a.body), "SUCCESS") || !strings.Contains(string(a.body), fmt.Sprint(10<<20)) {
		t.Errorf("too much: %s", a.body)
	}
}

func TestWholeResults_Pages(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	const field, times = `form_schema: {type: object, properties: {name: {type: string, maxLength: 10000}}}`, 60
	say := func(more string) (string, string) {
		return "  - {id: out, name: out, description: d, type: ACTION, subtype: DATA_FORMATTING, configurations: {format_type: template, " + more + "}}\n", "  - {from_node: page, to_node: out}\n"
	}
	v := x.visitor(t)
	shown := func(what string, a answer, want int) {
		t.Helper()
		if n := strings.Count(string(a.body), "wordy "); a.status != http.StatusOK || n != want || strings.Contains(string(a.body), "$blob") {
			t.Errorf("%s: %d, %d words instead of %d", what, a.status, n, want)
		}
	}
	word := strings.Repeat("wordy ", 1000) + "."
	repeated := strings.Repeat("{{page.outputs.fields.name}}", times)
	node, link := say(`template: "` + repeated + `"`)
	x.deploys(t, "form", visitFlow("form", "FORM", `{response_mode: sync, visitor_limit: 100, `+field+`}`, node, link))
	shown("a form", v.send(t, "/forms/form", url.Values{"q0": {word}}), 1000*times)
	nodes, links := "", ""
	for _, id := range []string{"a", "b", "c", "d"} {
		node, link := say(`template: "` + strings.Repeat("{{page.outputs.fields.name}}", 480) + `"`)
		nodes, links = nodes+strings.ReplaceAll(node, " out,", " "+id+","), links+strings.ReplaceAll(link, " out}", " "+id+"}")
	}
	x.deploys(t, "much", visitFlow("much", "FORM", `{response_mode: sync, `+field+`}`, nodes, links))
	says(t, v.send(t, "/forms/much", url.Values{"q0": {word}}), http.StatusOK, "The result is too large to be shown here.")

	x.saves(t, "byhand", visitFlow("byhand", "MANUAL", `{input_schema: {type: object, properties: {name: {type: string, maxLength: 10000}}}}`, strings.ReplaceAll(node, "fields.", ""), link))
	operator := x.visitor(t)
	operator.header["Authorization"] = "Bearer " + x.tokens["operator"]
	shown("a start by hand", operator.send(t, "/run/byhand", url.Values{"q0": {word}}), 1000*times)

	for n, more := range []string{`to_user: true, template: "{{page.outputs.message}} {{page.outputs.message}}"`, `template: "{{page.outputs.message}} {{page.outputs.message}}"`} {
		id := fmt.Sprintf("chat%d", n)
		node, link := say(more)
		x.deploys(t, id, visitFlow(id, "CHAT", `{max_message_length: 20000}`, node, link))
		v.get(t, "/chat/"+id)
		said := strings.TrimSpace(strings.Repeat("wordy ", 3000))
		execution := gjson.GetBytes(v.says(t, "/chat/"+id, "m", said).body, "execution").Str
		x.reaches(t, execution, engine.StatusSuccess)
		for range 2 {
			if got := v.turns(t, "/chat/"+id)[0].Get("answer").Str; got != said+" "+said {
				t.Errorf("%s answers with %d bytes instead of %d: %.50s", id, len(got), 2*len(said)+1, got)
			}
		}
		if got := x.read(t, execution).FullAnswer; n == 0 && got != said+" "+said {
			t.Errorf("full_answer has %d bytes: %.50s", len(got), got)
		}
	}
}
