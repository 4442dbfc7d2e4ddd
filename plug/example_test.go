package plug_test

import (
	"context"
	"fmt"
	"strings"

	"tandem/credential"
	"tandem/node"
	"tandem/plug"
	"tandem/text"
	"tandem/workflow"
)

// shout is a kind of node: a function from a configuration and an input to an output. The tags of the types describe it.
func shout() node.Kind {
	type config struct {
		Marks int64 `json:"marks" range:"1..9" doc:"How many exclamation marks follow." zh:"感叹号的个数。"`
	}
	type words struct {
		Text string `json:"text" doc:"What is said." zh:"内容。"`
	}
	return node.Define(node.About{
		Name: "TALK.SHOUT", Title: node.Says("Shout", "喊"), Description: node.Says("Says something loudly.", "大声说。"), Effect: workflow.Pure,
	}, func(_ context.Context, _ *node.Call, cfg config, in words) (words, error) {
		return words{strings.ToUpper(in.Text) + strings.Repeat("!", int(cfg.Marks))}, nil
	})
}

// An extension is a function that says what a package brings. Its instance is opened with it: app.Options{Extensions: []plug.Maker{talk}}.
func ExampleExtension() {
	talk := func(plug.Deps) plug.Extension {
		return plug.Extension{
			Name:  "talk",
			Kinds: []node.Kind{shout()},
			Credentials: []credential.Type{{
				Name: "megaphone", Label: text.Beside("Megaphone", "扩音器"), Fields: []credential.Field{credential.Token()},
			}},
		}
	}
	set, err := plug.Gather(talk(plug.Deps{}))
	fmt.Println(len(set.Kinds), "kind;", set.Credentials[0].Name, "credentials;", err)
	// Output: 1 kind; megaphone credentials; <nil>
}

// Names are taken once. Whoever puts a program together is told which extensions are at odds.
func ExampleGather_twice() {
	_, err := plug.Gather(plug.Extension{Name: "mine", Kinds: []node.Kind{shout()}}, plug.Extension{Name: "yours", Kinds: []node.Kind{shout()}})
	fmt.Println(err)
	// Output: conflict: there are two of the kind "TALK.SHOUT": the extensions "mine" and "yours" both bring it; leave one of them out, or call it differently
}
