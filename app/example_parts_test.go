package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"tandem/api"
	"tandem/app"
	"tandem/client"
	"tandem/credential"
	"tandem/host"
	"tandem/host/local"
	"tandem/identity"
	"tandem/node"
	"tandem/objectstore"
	"tandem/plug"
	"tandem/store/sqlite"
	"tandem/trigger"
	"tandem/workflow"
)

const twice = `
metadata: {id: twice, name: twice}
nodes:
  - {id: start, name: start, description: Begins., type: TRIGGER, subtype: MANUAL}
  - {id: double, name: double, description: Doubles., type: MATH, subtype: DOUBLE}
connections: [{id: c, from_node: start, to_node: double}]
`

// gong is a source of triggers: whoever strikes it starts the workflows that listen. It is closed when what was struck is stored.
type gong chan chan<- struct{}

func (gong) Kind() string { return "TRIGGER.GONG" }

func (gong) Register(context.Context, trigger.Trigger) error { return nil }

func (g gong) Listen(ctx context.Context, t trigger.Trigger, deliver trigger.Deliver) error {
	t.Ready()
	select {
	case stored := <-g:
		defer close(stored)
		return deliver(ctx, trigger.Event{Key: "the first", Payload: json.RawMessage(`{"loud": true}`)}, nil)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Brings a source of triggers, and the kind of node that stands for it in a workflow. A deployed workflow starts when the source says so.
func ExampleOpen_source() {
	struck := make(gong)
	kind := node.Define(node.About{
		Name: struck.Kind(), Title: node.Says("Gong", "锣"), Description: node.Says("Starts when the gong is struck.", "敲锣时启动。"), Effect: workflow.Pure,
		Inputs: node.HandsOn(),
	}, func(_ context.Context, _ *node.Call, _ struct{}, in json.RawMessage) (json.RawMessage, error) {
		return in, nil
	})
	inside(func(ctx context.Context, i *app.Instance, tandem *client.Client) {
		_, err := tandem.CreateWorkflow(ctx, []byte(`
metadata: {id: dinner, name: dinner}
nodes: [{id: gong, name: gong, description: Calls., type: TRIGGER, subtype: GONG}]
connections: []
`), true)
		check(err)
		_, err = tandem.Deploy(ctx, "dinner")
		check(err)
		stored := make(chan struct{})
		struck <- stored
		<-stored
		started, err := tandem.Executions(ctx, client.ExecutionQuery{})
		check(err)
		ended, err := i.Wait(ctx, app.Local(), started.Executions[0].ExecutionID)
		check(err)
		fmt.Println(ended.WorkflowID, ended.Status)
	}, func(plug.Deps) plug.Extension {
		return plug.Extension{Name: "gong", Kinds: []node.Kind{kind}, Sources: []trigger.Source{struck}}
	})
	// Output: dinner SUCCESS
}

// shelf is an object store.
type shelf struct{ holds map[string]string }

func (shelf) CredentialType() string { return "shelf_key" }

func (s shelf) Put(_ context.Context, _ credential.Opened, o objectstore.Object) (objectstore.Receipt, error) {
	content, err := o.Content.Open()
	if err != nil {
		return objectstore.Receipt{}, err
	}
	defer content.Close()
	text, err := io.ReadAll(content)
	s.holds[o.Bucket+"/"+o.Key] = string(text)
	return objectstore.Receipt{URL: "shelf://" + o.Bucket + "/" + o.Key, Status: 200, Response: json.RawMessage("{}")}, err
}

// Brings an object store and the type of the credentials that it takes. Nodes that upload a file name it as target.
func ExampleOpen_objectStore() {
	library := shelf{map[string]string{}}
	inside(func(ctx context.Context, _ *app.Instance, tandem *client.Client) {
		_, err := tandem.CreateCredential(ctx, api.CredentialRequest{Name: "key", Type: "shelf_key", Data: json.RawMessage(`{"token": "of-the-library-4711"}`)})
		check(err)
		_, err = tandem.CreateWorkflow(ctx, []byte(`
metadata: {id: keep, name: keep}
nodes:
  - {id: start, name: start, description: Begins., type: TRIGGER, subtype: MANUAL}
  - {id: write, name: write, description: Writes., type: ACTION, subtype: FILE_OPERATION, configurations: {operation: write, path: poem.txt, content: "Roses are red"}}
  - {id: put, name: put, description: Puts it away., type: ACTION, subtype: FILE_UPLOAD, configurations: {target: shelf, bucket: poems, key: one, credential_id: key, file: poem.txt}}
connections: [{id: c, from_node: start, to_node: write}, {id: d, from_node: write, to_node: put}]
`), true)
		check(err)
		done, err := tandem.Execute(ctx, "keep", api.ExecuteRequest{WaitSeconds: 30}, "")
		check(err)
		fmt.Println(done.Status, library.holds)
	}, func(plug.Deps) plug.Extension {
		return plug.Extension{
			Name: "shelf", ObjectStores: []plug.ObjectStore{{Target: "shelf", Store: library}},
			Credentials: []credential.Type{{Name: "shelf_key", Fields: []credential.Field{credential.Token()}, Untried: node.Says("A shelf takes any key.", "任何密钥均可。")}},
		}
	})
	// Output: SUCCESS map[poems/one:Roses are red]
}

// watched is a store that says when it is closed.
type watched struct{ *sqlite.DB }

func (w watched) Close() error {
	fmt.Println("the store is closed")
	return w.DB.Close()
}

// Opens an instance on a database that the program has opened, here that of a data directory. The instance closes it.
func ExampleOpen_store() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "tandem")
	check(err)
	defer func() { check(os.RemoveAll(dir)) }()
	db, err := sqlite.Open(ctx, sqlite.Options{Dir: filepath.Join(dir, "database")})
	check(err)
	instance, err := app.Open(ctx, app.Options{Dir: dir, Store: watched{db}})
	check(err)
	tandem, closeAPI, err := instance.API()
	check(err)
	kept, err := tandem.Workflows(ctx, client.WorkflowQuery{})
	check(err)
	fmt.Println(len(kept.Workflows), "workflows")
	check(closeAPI())
	check(instance.Close())
	// Output:
	// 0 workflows
	// the store is closed
}

// told is a host that tells what it starts.
type told struct{ app.Host }

func (t told) Start(ctx context.Context, p identity.Principal, r host.StartRequest) (host.Started, error) {
	started, err := t.Host.Start(ctx, p, r)
	fmt.Println("started", r.WorkflowID)
	return started, err
}

// Opens an instance with a host of the program's own: here the usual one, one node at a time, with something around it.
func ExampleOpen_host() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "tandem")
	check(err)
	defer func() { check(os.RemoveAll(dir)) }()
	instance, err := app.Open(ctx, app.Options{Dir: dir, Extensions: []plug.Maker{double}, Host: func(ctx context.Context, o local.Options) (app.Host, error) {
		o.Workers = 1
		h, err := local.New(ctx, o)
		return told{h}, err
	}})
	check(err)
	defer func() { check(instance.Close()) }()
	tandem, closeAPI, err := instance.API()
	check(err)
	defer func() { check(closeAPI()) }()
	_, err = tandem.CreateWorkflow(ctx, []byte(twice), true)
	check(err)
	done, err := tandem.Execute(ctx, "twice", api.ExecuteRequest{Inputs: json.RawMessage(`{"n": 21}`), WaitSeconds: 30}, "")
	check(err)
	fmt.Println(done.Status, string(done.Outputs["double"]))
	// Output:
	// started twice
	// SUCCESS {"n":42}
}
