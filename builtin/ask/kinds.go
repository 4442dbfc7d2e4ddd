package ask

import (
	"github.com/tidwall/gjson"

	"tandem/human"
	"tandem/node"
	"tandem/workflow"
)

// Deps are what kinds that ask people need of the program that they are part of.
type Deps struct {
	// Users are who can be asked; nil: nobody knows, and what questions name is taken as it is.
	Users Users
	// Channels are how people can be reached besides the inbox.
	Channels []human.Channel
}

// Kinds lists the kinds that belong to no medium. Those of a medium are in the packages of the vendors, see [Kind].
func Kinds(d Deps) []node.Kind {
	return []node.Kind{
		formSubmission(d),
		inAppApproval(d),
		manualReview(d),
	}
}

// Medium is what a kind that asks in one channel says of it.
type Medium struct {
	// Channel is the name of the channel; empty: the configuration has it.
	Channel string
	// Names is the field of the configuration that names who is asked when approvers does not; empty: there is none. As writes what stands
	// there as an approver; nil: as it is.
	Names string
	As    func(text string) string
}

// Asking is what a kind of one medium makes of its configuration.
type Asking struct {
	// Settings are what the channel has to know, as its messages bring it.
	Settings map[string]any
	// Approvers are who is asked when the configuration names nobody.
	Approvers []string
	// InCredential is the credential that replies are read with, if it is another than that of the node.
	InCredential string
}

// Kind makes a kind that asks in one medium, of a configuration that embeds [Config]. What all questions have in common (keys, inputs,
// effect) need not be said. Plan checks what is particular to the kind, and is not called when something was wrong before; there may be
// none.
func Kind[C any](d Deps, about node.About, m Medium, particular func(cfg C) (Asking, error),
	plan ...func(p *node.Planning, cfg *C)) node.Kind {
	about.Traits.AsksIn = m.Channel
	config := func(cfg *C) *Config { return any(cfg).(interface{ asks() *Config }).asks() }
	return humanKind(d, about, func(_ *node.Call, cfg C) (*humanAsking, error) {
		a, err := particular(cfg)
		return &humanAsking{Config: *config(&cfg), medium: m.Channel, settings: a.Settings, approvers: a.Approvers, in: a.InCredential}, err
	}, func(p *node.Planning, cfg *C) {
		d.planHuman(p, config(cfg), m, func(*humanDraft) {
			for _, check := range plan {
				check(p, cfg)
			}
		})
	})
}

// described adds to what is known of a kind what all questions have in common.
func (d Deps) described(about node.About) node.About {
	about.Effect, about.OnUnknown = workflow.Once, workflow.OnUnknownRetry // a second copy of a question leads to the same interaction
	if about.Traits.AsksIn == "" {
		about.Traits.AsksIn = human.InApp
	}
	about.Keys, about.Aliases, about.Inputs = humanKeys(), humanAliases(), humanInputs()
	names, addressed := []string{human.InApp}, []string{}
	media := human.MediaOf(d.Channels...)
	for _, c := range d.Channels {
		names = append(names, c.Name())
		if media[c.Name()].TakesURL {
			addressed = append(addressed, c.Name())
		}
	}
	about.Values = map[string][]string{"channel_type": names}
	about.Beside = map[string][]node.Condition{"webhook_url": {{Field: "channel_type", Values: addressed}}}
	return about
}

// Texts are the texts of a list, without those that are empty.
func Texts(list []node.Scalar) []string { return texts(list) }

// Static says that nothing in a value comes from a placeholder: it is known when a workflow is saved.
func Static(v gjson.Result) bool { return static(v) }
