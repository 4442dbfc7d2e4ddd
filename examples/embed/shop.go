package main

import (
	"context"

	"tandem/credential"
	"tandem/human"
	"tandem/llm"
	"tandem/node"
	"tandem/plug"
	"tandem/text"
	"tandem/trigger"
	"tandem/workflow"
)

// shop is the extension: a kind, a channel, a provider, a type of credentials, and a trigger with its source.
func shop(letters postbox, customers rings) plug.Maker {
	return func(plug.Deps) plug.Extension {
		return plug.Extension{
			Name:        "shop",
			Kinds:       []node.Kind{price(), bell()},
			Channels:    []human.Channel{letters},
			Providers:   []plug.Provider{{Name: "parrot", New: newParrot}},
			Credentials: []credential.Type{stamp()},
			Sources:     []trigger.Source{customers},
		}
	}
}

// priceConfig is what a node of the kind is configured with. The tags are the whole description: validation, the API and the reference read
// them.
type priceConfig struct {
	PerPound float64 `json:"per_pound" range:"0..1000" doc:"What a pound costs." zh:"每磅的价格。"`
}

// Defaults sets what holds when the configuration does not say otherwise.
func (c *priceConfig) Defaults() { c.PerPound = 10 }

// What goes in and comes out are Go types, too.
type (
	priceInput struct {
		Item   string  `json:"item" doc:"What is bought." zh:"购买的商品。"`
		Pounds float64 `json:"pounds" doc:"How much of it." zh:"数量（磅）。"`
	}
	priceOutput struct {
		Item  string  `json:"item" doc:"What is bought." zh:"购买的商品。"`
		Price float64 `json:"price" doc:"What it costs." zh:"价格。"`
	}
)

// price is the kind SHOP.PRICE: it computes what an order costs.
func price() node.Kind {
	return node.Define(node.About{
		Name: "SHOP.PRICE", Title: node.Says("Price", "价格"), Description: node.Says("Computes what an order costs.", "计算订单价格。"),
		Effect: workflow.Pure,
	}, func(_ context.Context, _ *node.Call, cfg priceConfig, in priceInput) (priceOutput, error) {
		return priceOutput{Item: in.Item, Price: cfg.PerPound * in.Pounds}, nil
	})
}

// stamp is the type of credentials that a postbox with a counter would want. Nobody uses it here.
func stamp() credential.Type {
	return credential.Type{
		Name: "stamp", Label: text.Beside("Stamp", "邮票"), Fields: []credential.Field{credential.Token()},
		Untried: text.Beside("A stamp is used up by trying it.", "邮票一经试用即失效。"),
	}
}

// postbox is the channel postcard: what it is given to send can be read from cards.
type postbox struct{ cards chan postcard }

// postcard is a message that was sent.
type postcard struct{ question, text string }

// Name implements [human.Channel]: it is what nodes write as channel_type.
func (postbox) Name() string { return "postcard" }

// Send implements [human.Channel].
func (p postbox) Send(ctx context.Context, m human.Message) (human.Receipt, error) {
	if m.Kind != human.KindRequest { // reminders and the end of the question are not worth a stamp
		return human.Receipt{}, nil
	}
	select {
	case p.cards <- postcard{question: m.Interaction.ID, text: m.Headline()}:
		return human.Receipt{}, nil
	case <-ctx.Done():
		return human.Receipt{}, context.Cause(ctx)
	}
}

// parrot is a provider whose models always say the same.
type parrot struct{}

func newParrot(llm.Settings) (llm.Provider, error) { return parrot{}, nil }

// Complete implements [llm.Provider].
func (parrot) Complete(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Completion, error) {
	return llm.Completion{Model: r.Model, Finish: llm.FinishStop, Message: llm.Message{Role: llm.Assistant, Content: "Thank you! Said by an " + r.Model + "."}}, nil
}
