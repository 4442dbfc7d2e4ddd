package app

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/builtin/notice"
	"tandem/node"
	"tandem/plug"
	"tandem/text"
	"tandem/workflow"
)

// birds is an extension that delivers notices by a kind of its own, and tells which it was given.
func birds(flown chan<- string) plug.Maker {
	type config struct {
		To   string     `json:"to" doc:"Whom it is for." zh:"接收者。"`
		Loft string     `json:"loft" doc:"Where it lives." zh:"鸽舍。"`
		Text node.Words `json:"text" doc:"What is told." zh:"内容。"`
	}
	type ring struct {
		Ring string `json:"ring" doc:"The ring on its foot." zh:"脚环。"`
	}
	fly := node.Define(node.About{
		Name: "BIRD.PIGEON", Title: text.Beside("Pigeon", "信鸽"), Description: text.Beside("Carries a message.", "传递消息。"), Effect: workflow.Once,
	}, func(_ context.Context, _ *node.Call, cfg config, _ struct{}) (ring, error) {
		flown <- cfg.To + " at " + cfg.Loft + ": " + string(cfg.Text)
		return ring{"r7"}, nil
	})
	return madeOf(plug.Extension{Name: "bird", Kinds: []node.Kind{fly}, Notices: []notice.Way{{
		Name: "pigeon", Kind: fly.About.Name, Effect: workflow.Once, ID: "ring",
		Settings: []notice.Setting{{Name: "loft", Meaning: text.Beside("By pigeon: where it lives.", "鸽舍：仅用于信鸽。")}},
		Configure: func(n notice.Notice) map[string]any {
			return map[string]any{"to": n.To, "loft": n.Settings["loft"], "text": n.Subject}
		},
	}}})
}

// A notification goes in every way that an extension brings, and people can choose it.
func TestNotification_WayOfAnExtension(t *testing.T) {
	t.Parallel()
	flown := make(chan string, 1)
	x := openSiteAs(t, func(o *Options, _ string) { o.Extensions = []plug.Maker{birds(flown)} })
	told := want[api.NodeKind](t, x.call(t, "viewer", "GET", "/node-kinds/EXTERNAL_ACTION.NOTIFICATION", nil), http.StatusOK)
	if got := gjson.GetBytes(told.ConfigSchema, "properties.channels.items.properties.type.enum").Raw; got != `["in_app","email","pigeon","slack","webhook"]` {
		t.Errorf("the ways are %s", got)
	}
	if got := gjson.GetBytes(told.ConfigSchema, "properties.channels.items.properties.loft"); got.Get("description").Str != "By pigeon: where it lives." ||
		got.Get("type").Str != "string" {
		t.Errorf("what only the pigeon reads is %s", got.Raw)
	}
	const settings = "properties.channels.items.properties.@keys"
	if got := gjson.GetBytes(told.ConfigSchema, settings).Raw; got != `["type","to","credential_id","imap_credential_id","sent_mailbox","loft"]` {
		t.Errorf("a channel has %s", got)
	}
	saved := x.save(t, `
metadata: {id: tell, name: tell, description: d}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: tell, description: d, type: EXTERNAL_ACTION, subtype: NOTIFICATION, configurations: {channels: [{type: pigeon, to: ann, loft: roof}, {type: in_app, loft: roof}], message: Come home}}
connections:
  - {from_node: start, to_node: tell}
`)
	const idle = "nodes[1].configurations.channels[1].loft"
	if !slices.ContainsFunc(saved.Problems, func(p api.Problem) bool {
		return p.Path == idle && strings.Contains(p.Message, "only a delivery by pigeon reads it")
	}) {
		t.Errorf("the problems are %+v", saved.Problems)
	}
	e := x.read(t, x.execute(t, "tell", api.ExecuteRequest{WaitSeconds: 60}))
	if got := <-flown; got != "ann at roof: Come home" {
		t.Errorf("the pigeon carried %q", got)
	}
	if d := toldBy(t, e).Get("deliveries.0"); d.Get("id").Str != "r7" || !d.Get("ok").Bool() {
		t.Errorf("the delivery is %s", d.Raw)
	}
}
