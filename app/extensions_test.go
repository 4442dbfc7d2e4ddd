package app

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"tandem/api"
	"tandem/credential"
	"tandem/engine"
	"tandem/fault"
	"tandem/host"
	"tandem/host/local"
	"tandem/human"
	"tandem/identity"
	"tandem/integration/webhook"
	"tandem/llm"
	"tandem/node"
	"tandem/plug"
	"tandem/store/sqlite"
	"tandem/store/sqlite/sqlitetest"
	"tandem/text"
	"tandem/workflow"
)

// plainKind is a kind that hands its input on.
func plainKind(name string) node.Kind {
	return node.Define(node.About{
		Name: name, Title: text.Beside("Plain", "普通"), Description: text.Beside("Hands on.", "传递。"), Effect: workflow.Pure,
	}, func(_ context.Context, _ *node.Call, _ struct{}, in json.RawMessage) (json.RawMessage, error) {
		return in, nil
	})
}

func madeOf(e plug.Extension) plug.Maker { return func(plug.Deps) plug.Extension { return e } }

// A provider that an extension brings stands where people choose one, beside those that are built in.
func TestProfiles_Providers(t *testing.T) {
	t.Parallel()
	x := openSiteAs(t, func(o *Options, _ string) {
		o.Extensions = []plug.Maker{madeOf(plug.Extension{Name: "oracle", Providers: []plug.Provider{{Name: "oracle", Label: text.Beside("The oracle", "神谕"),
			New: func(llm.Settings) (llm.Provider, error) { return nil, nil }}}})}
	})
	told := want[api.Profiles](t, x.call(t, "viewer", "GET", "/llm/profiles", nil), http.StatusOK)
	var got []string
	for _, p := range told.Providers {
		got = append(got, p.Name)
		if p.Label.En == "" || p.Label.Zh == "" || p.Scripted != (p.Name == "scripted") {
			t.Errorf("%+v", p)
		}
	}
	if want := []string{"openai", "anthropic", "gemini", "scripted", "oracle"}; !slices.Equal(got, want) {
		t.Errorf("the providers are %q, want %q", got, want)
	}
}

// A name that something built in has is refused, with an error that says whose it is, and the data directory is left as if nobody had come.
func TestOpen_ExtensionsClash(t *testing.T) {
	t.Parallel()
	dir := sqlitetest.Dir(t)
	for name, c := range map[string]struct {
		brings plug.Extension
		says   string
	}{
		"Kind":       {plug.Extension{Kinds: []node.Kind{plainKind("FLOW.IF")}}, `kind "FLOW.IF"`},
		"Channel":    {plug.Extension{Channels: []human.Channel{webhook.New(nil)}}, `channel "webhook": the extensions "webhook" and "mine"`},
		"Provider":   {plug.Extension{Providers: []plug.Provider{{Name: "openai", New: func(llm.Settings) (llm.Provider, error) { return nil, nil }}}}, `provider "openai": the extensions "openai" and "mine"`},
		"Credential": {plug.Extension{Credentials: []credential.Type{{Name: "slack_bot"}}}, `credential type "slack_bot": the extensions "slack" and "mine"`},
	} {
		c.brings.Name = "mine"
		i, err := Open(t.Context(), Options{Dir: dir, Extensions: []plug.Maker{madeOf(c.brings)}})
		if fault.CodeOf(err) != fault.Conflict || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), `"mine"`) {
			t.Errorf("%s: %v", name, err)
		}
		if i != nil {
			t.Errorf("%s: an instance was opened", name)
		}
	}
	i, err := Open(t.Context(), Options{Dir: dir})
	if err != nil {
		t.Fatalf("the data directory is still held: %v", err)
	}
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Options{}); fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), "Dir") {
		t.Errorf("without a data directory: %v", err)
	}
}

// closing counts how often a store was closed, counted how many executions were started.
type (
	closingStore struct {
		Store
		closed *atomic.Int64
	}
	countingHost struct {
		Host
		started *atomic.Int64
	}
)

func (s closingStore) Close() error {
	s.closed.Add(1)
	return s.Store.Close()
}

func (h countingHost) Start(ctx context.Context, p identity.Principal, r host.StartRequest) (host.Started, error) {
	h.started.Add(1)
	return h.Host.Start(ctx, p, r)
}

// An instance works with the store and the host that it is given, and with kinds that the program does not have.
func TestOpen_Seams(t *testing.T) {
	t.Parallel()
	var closed, started atomic.Int64
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: sqlitetest.Dir(t)})
	if err != nil {
		t.Fatal(err)
	}
	i, err := Open(t.Context(), Options{
		Dir: t.TempDir(), Store: closingStore{db, &closed}, Extensions: []plug.Maker{madeOf(plug.Extension{Name: "mine", Kinds: []node.Kind{plainKind("EXTERNAL_ACTION.MINE")}})},
		Host: func(ctx context.Context, o local.Options) (Host, error) {
			h, err := local.New(ctx, o)
			return countingHost{h, &started}, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	source, problems := i.check([]byte(`{"metadata": {"id": "w", "name": "w"}, "nodes": [
		{"id": "start", "name": "start", "description": "Begins.", "type": "TRIGGER", "subtype": "MANUAL"},
		{"id": "own", "name": "own", "description": "Hands on.", "type": "EXTERNAL_ACTION", "subtype": "MINE"}],
		"connections": [{"id": "c", "from_node": "start", "to_node": "own"}]}`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if _, err := i.Save(t.Context(), Local(), source.Definition); err != nil {
		t.Fatal(err)
	}
	execution, err := i.Start(t.Context(), Local(), "w", json.RawMessage(`{"a": 1}`))
	if err != nil {
		t.Fatal(err)
	}
	if ended, err := i.Wait(t.Context(), Local(), execution); err != nil || ended.Status != engine.StatusSuccess {
		t.Errorf("it ended as %+v, %v", ended, err)
	}
	if got, err := db.Stores().Executions.Get(t.Context(), Local(), execution); err != nil || got.Status != engine.StatusSuccess || started.Load() != 1 {
		t.Errorf("the store has %+v, %v, and the host was asked %d times", got, err, started.Load())
	}
	if err := i.Close(); err != nil || closed.Load() != 1 {
		t.Errorf("the store was closed %d times, %v", closed.Load(), err)
	}
}
