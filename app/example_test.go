package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"

	"tandem/api"
	"tandem/app"
	"tandem/client"
	"tandem/human"
	"tandem/llm"
	"tandem/node"
	"tandem/plug"
	"tandem/workflow"
)

// inside opens an instance with extensions in a new data directory and hands its API to a program.
func inside(program func(ctx context.Context, i *app.Instance, tandem *client.Client), extensions ...plug.Maker) {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "tandem")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { check(os.RemoveAll(dir)) }()
	instance, err := app.Open(ctx, app.Options{Dir: dir, Extensions: extensions})
	check(err)
	defer func() { check(instance.Close()) }()
	tandem, closeAPI, err := instance.API()
	check(err)
	defer func() { check(closeAPI()) }()
	program(ctx, instance, tandem)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// Opens an instance on a data directory, keeps a workflow and runs it. The client is the one that programs elsewhere use with a server.
func ExampleOpen() {
	inside(func(ctx context.Context, _ *app.Instance, tandem *client.Client) {
		_, err := tandem.CreateWorkflow(ctx, []byte(`
metadata: {id: hello, name: hello}
nodes:
  - {id: start, name: start, description: Begins., type: TRIGGER, subtype: MANUAL}
  - {id: greet, name: greet, description: Greets., type: ACTION, subtype: DATA_FORMATTING, configurations: {format_type: template, template: "Hello {{start.outputs.name}}!"}}
connections: [{id: c, from_node: start, to_node: greet}]
`), true)
		check(err)
		done, err := tandem.Execute(ctx, "hello", api.ExecuteRequest{Inputs: json.RawMessage(`{"name": "Ann"}`), WaitSeconds: 30}, "")
		check(err)
		fmt.Println(done.Status, text(done.Outputs["greet"], "formatted"))
	})
	// Output: SUCCESS Hello Ann!
}

// text is a field of a JSON object that is a text.
func text(object json.RawMessage, field string) string {
	var fields map[string]any
	check(json.Unmarshal(object, &fields))
	return fmt.Sprint(fields[field])
}

// double is a kind of a program's own: MATH.DOUBLE.
func double(plug.Deps) plug.Extension {
	type number struct {
		N float64 `json:"n" doc:"A number." zh:"数字。"`
	}
	return plug.Extension{Name: "math", Kinds: []node.Kind{node.Define(node.About{
		Name: "MATH.DOUBLE", Title: node.Says("Double", "加倍"), Description: node.Says("Doubles a number.", "将数字加倍。"), Effect: workflow.Pure,
	}, func(_ context.Context, _ *node.Call, _ struct{}, in number) (number, error) {
		return number{2 * in.N}, nil
	})}}
}

// Brings a kind of node. It is checked, listed, described and run like those that are built in.
func ExampleOpen_kind() {
	inside(func(ctx context.Context, _ *app.Instance, tandem *client.Client) {
		_, err := tandem.CreateWorkflow(ctx, []byte(twice), true)
		check(err)
		done, err := tandem.Execute(ctx, "twice", api.ExecuteRequest{Inputs: json.RawMessage(`{"n": 21}`), WaitSeconds: 30}, "")
		check(err)
		fmt.Println(done.Status, string(done.Outputs["double"]))
	}, double)
	// Output: SUCCESS {"n":42}
}

// drum is a channel to people: the questions that it is given to send can be read from it.
type drum chan human.Message

func (drum) Name() string { return "drum" }

func (d drum) Send(_ context.Context, m human.Message) (human.Receipt, error) {
	if m.Kind == human.KindRequest {
		d <- m
	}
	return human.Receipt{}, nil
}

// Brings a channel to people. Nodes name it as channel_type.
func ExampleOpen_channel() {
	beats := make(drum, 1)
	inside(func(ctx context.Context, i *app.Instance, tandem *client.Client) {
		_, err := tandem.CreateWorkflow(ctx, []byte(`
metadata: {id: ask, name: ask}
nodes:
  - {id: start, name: start, description: Begins., type: TRIGGER, subtype: MANUAL}
  - {id: ask, name: ask, description: Asks., type: HUMAN_IN_THE_LOOP, subtype: IN_APP_APPROVAL, configurations: {title: "Shall we go?", channel_type: drum}}
connections: [{id: c, from_node: start, to_node: ask}]
`), true)
		check(err)
		started, err := tandem.Execute(ctx, "ask", api.ExecuteRequest{}, "")
		check(err)
		question := <-beats
		fmt.Println(question.Headline())
		_, err = tandem.Respond(ctx, question.Interaction.ID, api.RespondRequest{ResponseData: json.RawMessage(`{"action": "approve"}`)})
		check(err)
		ended, err := i.Wait(ctx, app.Local(), started.ExecutionID)
		check(err)
		fmt.Println(ended.Status)
	}, func(plug.Deps) plug.Extension { return plug.Extension{Name: "drum", Channels: []human.Channel{beats}} })
	// Output:
	// Shall we go?
	// SUCCESS
}

// oracle is a provider of models that always says the same.
type oracle struct{}

func (oracle) Complete(context.Context, llm.Request, func(llm.Delta)) (llm.Completion, error) {
	return llm.Completion{Message: llm.Message{Role: llm.Assistant, Content: "Know thyself."}, Finish: llm.FinishStop}, nil
}

// Brings a provider of models. Profiles name it, and nodes name profiles.
func ExampleOpen_provider() {
	inside(func(ctx context.Context, _ *app.Instance, tandem *client.Client) {
		_, err := tandem.CreateProfile(ctx, api.Profile{ID: "delphi", Provider: "oracle", Model: "pythia"})
		check(err)
		_, err = tandem.CreateWorkflow(ctx, []byte(`
metadata: {id: seek, name: seek}
nodes:
  - {id: start, name: start, description: Begins., type: TRIGGER, subtype: MANUAL}
  - {id: advice, name: advice, description: Asks a model., type: CALL, subtype: SUMMARY, configurations: {profile_id: delphi}, input_params: {messages: ["{{start.outputs.question}}"]}}
connections: [{id: c, from_node: start, to_node: advice}]
`), true)
		check(err)
		done, err := tandem.Execute(ctx, "seek", api.ExecuteRequest{Inputs: json.RawMessage(`{"question": "What is best?"}`), WaitSeconds: 30}, "")
		check(err)
		fmt.Println(done.Status, text(done.Outputs["advice"], "summary"))
	}, func(plug.Deps) plug.Extension {
		return plug.Extension{Name: "oracle", Providers: []plug.Provider{{Name: "oracle", New: func(llm.Settings) (llm.Provider, error) { return oracle{}, nil }}}}
	})
	// Output: SUCCESS Know thyself.
}

// Serves an instance and calls it over HTTP, as a program on another machine does.
func ExampleServe() {
	dir, err := os.MkdirTemp("", "tandem")
	check(err)
	defer func() { check(os.RemoveAll(dir)) }()
	ctx, stop := context.WithCancel(context.Background())
	serving, ended := make(chan app.Serving, 1), make(chan error, 1)
	go func() {
		ended <- app.Serve(ctx, app.ServeOptions{Addr: "127.0.0.1:0", Dir: dir, Extensions: []plug.Maker{double}, Started: func(s app.Serving) { serving <- s }})
	}()
	at := <-serving
	tandem, err := client.New(client.Options{URL: at.URL, Token: at.Secret})
	check(err)
	kinds, err := tandem.NodeKinds(ctx)
	check(err)
	for _, k := range kinds.NodeKinds {
		if strings.HasPrefix(k.Name, "MATH.") {
			fmt.Println(k.Name, "-", k.Description.En)
		}
	}
	stop()
	check(<-ended)
	// Output: MATH.DOUBLE - Doubles a number.
}
