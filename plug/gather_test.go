package plug_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"tandem/builtin/notice"
	"tandem/builtin/turn"
	"tandem/credential"
	"tandem/fault"
	"tandem/human"
	"tandem/llm"
	"tandem/node"
	"tandem/objectstore"
	"tandem/plug"
	"tandem/text"
	"tandem/trigger"
)

// channel is one that sends nothing.
type channel string

func (c channel) Name() string { return string(c) }
func (channel) Send(context.Context, human.Message) (human.Receipt, error) {
	return human.Receipt{}, nil
}

// shelf keeps nothing.
type shelf struct{}

func (shelf) CredentialType() string { return "none" }
func (shelf) Put(context.Context, credential.Opened, objectstore.Object) (objectstore.Receipt, error) {
	return objectstore.Receipt{}, nil
}

// source starts nothing.
type source string

func (s source) Kind() string                                  { return string(s) }
func (source) Register(context.Context, trigger.Trigger) error { return nil }

func kind(name string, older ...string) node.Kind {
	return node.Raw(node.About{
		Name: name, Older: older, Title: text.Beside("Title", "标题"), Description: text.Beside("What it does.", "做什么。"), Keys: []node.Key{{Name: "result"}},
	}, func(context.Context, *node.Call, struct{}, json.RawMessage) (node.Outcome, error) {
		return node.Done{}, nil
	})
}

func model(llm.Settings) (llm.Provider, error) {
	return nil, fault.New(fault.Unsupported, "there is no model")
}

func carried(n notice.Notice) map[string]any { return map[string]any{"to": n.To} }

// sets is an extension that delivers notices in a way with settings of these names, which all mean the same.
func sets(meaning text.Text, names ...string) plug.Extension {
	way := notice.Way{Name: "pigeon", Configure: carried}
	for _, name := range names {
		way.Settings = append(way.Settings, notice.Setting{Name: name, Meaning: meaning})
	}
	return plug.Extension{Notices: []notice.Way{way}}
}

// talks is an extension that brings a provider with a kind for turns.
func talks(provider, kind string) plug.Extension {
	return plug.Extension{Providers: []plug.Provider{{Name: provider, New: model, Turns: turn.Of[talking](turn.Kind{Name: kind})}}}
}

type talking struct{ turn.Common }

func (c talking) Turn(call *node.Call) (turn.Config, error) { return c.With(call, llm.Params{}) }

func TestGather(t *testing.T) {
	t.Parallel()
	one := plug.Extension{
		Name: "one", Kinds: []node.Kind{kind("ONE.A")}, Channels: []human.Channel{channel("pigeon")},
		Providers:   []plug.Provider{{Name: "oracle", Label: text.Beside("The oracle", "神谕"), New: model}},
		Credentials: []credential.Type{{Name: "wing", Fields: []credential.Field{credential.Token()}}}, ObjectStores: []plug.ObjectStore{{Target: "shelf", Store: shelf{}}},
		// What others bring is known, also what comes after.
		KindsOf: func(all *plug.Set) []node.Kind {
			var kinds []node.Kind
			for _, name := range all.Media().Names() {
				kinds = append(kinds, kind("ASK."+strings.ToUpper(name)))
			}
			return kinds
		},
	}
	two := plug.Extension{
		Name: "two", Kinds: []node.Kind{kind("TWO.A", "OLD")}, Channels: []human.Channel{channel("drum")}, Providers: []plug.Provider{{Name: "bones", New: model}},
		Credentials: []credential.Type{{Name: "skin"}},
	}
	set, err := plug.Gather(one, two)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, k := range set.Kinds {
		kinds = append(kinds, k.About.Name)
	}
	if want := []string{"ONE.A", "ASK.DRUM", "ASK.PIGEON", "TWO.A"}; !slices.Equal(kinds, want) {
		t.Errorf("the kinds are %q, want %q", kinds, want)
	}
	var providers []string
	for _, p := range set.AboutProviders() {
		providers = append(providers, p.Name+": "+p.Label.In(text.English))
	}
	if want := []string{"oracle: The oracle", "bones: bones"}; !slices.Equal(providers, want) || len(set.Factories()) != 2 {
		t.Errorf("the providers are %q, want %q", providers, want)
	}
	if len(set.Credentials) != 2 || set.Credentials[0].Name != "skin" || len(set.Credentials[1].Fields) != 2 {
		t.Errorf("the types of credentials are %+v", set.Credentials)
	}
	if set.ObjectStores["shelf"] == nil {
		t.Errorf("the object stores are %v", set.ObjectStores)
	}
	three := talks("grey", "A.B")
	three.Name = "three"
	if set, err = plug.Gather(one, three); err != nil || len(set.Turns()) != 1 || set.Turns()["grey"].Name != "A.B" {
		t.Errorf("the kinds with turns are %v, %v", set.Turns(), err)
	}
}

// Two parts of one name are refused, whatever they are, and so is what could not be used. The error names the part and who brings it.
func TestGather_Refuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		one, two plug.Extension
		code     fault.Code
		says     []string
	}{
		"Kind":       {plug.Extension{Kinds: []node.Kind{kind("A.B")}}, plug.Extension{Kinds: []node.Kind{kind("A.B")}}, fault.Conflict, []string{`kind "A.B"`, `"one" and "two"`}},
		"OlderName":  {plug.Extension{Kinds: []node.Kind{kind("A.B", "A.C")}}, plug.Extension{KindsOf: func(*plug.Set) []node.Kind { return []node.Kind{kind("A.C")} }}, fault.Conflict, []string{`kind "A.C"`, `"one" and "two"`}},
		"Channel":    {plug.Extension{Channels: []human.Channel{channel("c")}}, plug.Extension{Channels: []human.Channel{channel("c")}}, fault.Conflict, []string{`channel "c"`, `"one" and "two"`}},
		"Provider":   {plug.Extension{Providers: []plug.Provider{{Name: "p", New: model}}}, plug.Extension{Providers: []plug.Provider{{Name: "p", New: model}}}, fault.Conflict, []string{`provider "p"`, `"one" and "two"`}},
		"Turns":      {talks("p", "A.B"), talks("q", "A.B"), fault.Conflict, []string{`kind "A.B"`, `"one" and "two"`}},
		"TurnsKind":  {plug.Extension{Providers: talks("p", "A.B").Providers, Kinds: []node.Kind{kind("A.B")}}, plug.Extension{Kinds: []node.Kind{kind("A.B")}}, fault.Conflict, []string{`kind "A.B"`, `"one" and "two"`}},
		"NoTurns":    {plug.Extension{Providers: []plug.Provider{{Name: "p", New: model, Turns: turn.Kind{Name: "A.B"}}}}, plug.Extension{}, fault.Invalid, []string{`kind "A.B"`, `"one"`, "turn.Of"}},
		"Credential": {plug.Extension{Credentials: []credential.Type{{Name: "k"}}}, plug.Extension{Credentials: []credential.Type{{Name: "k"}}}, fault.Conflict, []string{`credential type "k"`, `"one" and "two"`}},
		"Store":      {plug.Extension{ObjectStores: []plug.ObjectStore{{Target: "s", Store: shelf{}}}}, plug.Extension{ObjectStores: []plug.ObjectStore{{Target: "s", Store: shelf{}}}}, fault.Conflict, []string{`object store "s"`, `"one" and "two"`}},
		"Source":     {plug.Extension{Kinds: []node.Kind{kind("TRIGGER.A")}, Sources: []trigger.Source{source("TRIGGER.A")}}, plug.Extension{Sources: []trigger.Source{source("TRIGGER.A")}}, fault.Conflict, []string{`source of the trigger "TRIGGER.A"`, `"one" and "two"`}},
		"NoSource":   {plug.Extension{Sources: []trigger.Source{nil}}, plug.Extension{}, fault.Invalid, []string{`"one"`, "nil"}},
		"NoTrigger":  {plug.Extension{}, plug.Extension{Sources: []trigger.Source{source("TRIGGER.B")}}, fault.Invalid, []string{`source of the trigger "TRIGGER.B"`, `"two"`, "no extension brings that kind"}},
		"Twice":      {plug.Extension{Kinds: []node.Kind{kind("A.B"), kind("A.B")}}, plug.Extension{}, fault.Conflict, []string{`kind "A.B"`, `"one" brings it twice`}},
		"Inbox":      {plug.Extension{Channels: []human.Channel{channel(human.InApp)}}, plug.Extension{}, fault.Conflict, []string{`"in_app"`, `"one"`}},
		"NoName":     {plug.Extension{}, plug.Extension{Channels: []human.Channel{channel("")}}, fault.Invalid, []string{"channel", `"two"`, "no name"}},
		"NoChannel":  {plug.Extension{Channels: []human.Channel{nil}}, plug.Extension{}, fault.Invalid, []string{`"one"`, "nil"}},
		"Notices": {plug.Extension{Notices: []notice.Way{{Name: "pigeon", Configure: carried}}}, plug.Extension{Notices: []notice.Way{{Name: "pigeon", Configure: carried}}}, fault.Conflict,
			[]string{`way to deliver notices "pigeon"`, `"one" and "two"`}},
		"NoConfigure":  {plug.Extension{Notices: []notice.Way{{Name: "pigeon"}}}, plug.Extension{}, fault.Invalid, []string{`way to deliver notices "pigeon"`, `"one"`, "Configure"}},
		"NoMeaning":    {sets(text.Text{}, "loft"), plug.Extension{}, fault.Invalid, []string{`"pigeon"`, "what it means"}},
		"SettingOfAll": {sets(text.Beside("Meaning", "含义"), "to"), plug.Extension{}, fault.Invalid, []string{`"pigeon"`, `"to"`}},
		"SettingTwice": {sets(text.Beside("Meaning", "含义"), "loft", "loft"), plug.Extension{}, fault.Invalid, []string{`"pigeon"`, `"loft"`, "twice"}},
		"NoFactory":    {plug.Extension{Providers: []plug.Provider{{Name: "p"}}}, plug.Extension{}, fault.Invalid, []string{`provider "p"`, `"one"`, "New"}},
		"NoStore":      {plug.Extension{ObjectStores: []plug.ObjectStore{{Target: "s"}}}, plug.Extension{}, fault.Invalid, []string{`object store "s"`, `"one"`, "Store"}},
		"NoKind":       {plug.Extension{Kinds: []node.Kind{kind("echo")}}, plug.Extension{}, fault.Invalid, []string{`kind "echo"`, `"one"`, "TYPE.SUBTYPE"}},
		"NoRun":        {plug.Extension{Kinds: []node.Kind{{About: kind("A.B").About}}}, plug.Extension{}, fault.Invalid, []string{`kind "A.B"`, `"one"`, "Run"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.one.Name, c.two.Name = "one", "two"
			_, err := plug.Gather(c.one, c.two)
			if fault.CodeOf(err) != c.code {
				t.Fatalf("got %v, want %s", err, c.code)
			}
			for _, text := range c.says {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q does not say %s", err, text)
				}
			}
		})
	}
	if _, err := plug.Gather(plug.Extension{}); fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), "Name") {
		t.Errorf("an extension without a name: %v", err)
	}
}
