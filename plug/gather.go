package plug

import (
	"fmt"
	"slices"

	"tandem/builtin/notice"
	"tandem/builtin/turn"
	"tandem/credential"
	"tandem/fault"
	"tandem/human"
	"tandem/llm"
	"tandem/mailbox"
	"tandem/node"
	"tandem/objectstore"
	"tandem/text"
	"tandem/trigger"
)

// Set is what the extensions of a program bring together. It is not changed after it was gathered.
type Set struct {
	// Kinds are in the order in which they were brought; the registry has its own.
	Kinds        []node.Kind
	Channels     []human.Channel
	Providers    map[string]Provider
	Credentials  credential.Types
	ObjectStores map[string]objectstore.Store
	Mailboxes    map[string]mailbox.Service
	Notices      map[string]notice.Way
	Sources      []trigger.Source
	// providers are the names of the providers in the order in which they were brought.
	providers []string
}

// Kind finds a kind by its name. Kinds that are made of what others bring find all of them when they run, and maybe not when they are made.
func (s *Set) Kind(name string) (node.Kind, bool) {
	i := slices.IndexFunc(s.Kinds, func(k node.Kind) bool { return k.About.Name == name })
	if i < 0 {
		return node.Kind{}, false
	}
	return s.Kinds[i], true
}

// Media is what is known about the channels.
func (s *Set) Media() human.Media { return human.MediaOf(s.Channels...) }

// Factories are what makes the providers, by name.
func (s *Set) Factories() map[string]llm.Factory {
	factories := make(map[string]llm.Factory, len(s.Providers))
	for name, p := range s.Providers { // order does not matter: one entry per name
		factories[name] = p.New
	}
	return factories
}

// Turns are the kinds of nodes that talk with the models of one provider, by the name of the provider.
func (s *Set) Turns() map[string]turn.Kind {
	kinds := map[string]turn.Kind{}
	for name, p := range s.Providers { // order does not matter: one entry per name
		if !p.Turns.IsZero() {
			kinds[name] = p.Turns
		}
	}
	return kinds
}

// AboutProviders is what the providers say about themselves, in the order in which they were brought.
func (s *Set) AboutProviders() []llm.About {
	var list []llm.About
	for _, name := range s.providers {
		p := s.Providers[name]
		if p.Label.IsZero() {
			p.Label = text.Beside(name, name)
		}
		list = append(list, llm.About{Name: name, Label: p.Label, Scripted: p.Scripted})
	}
	return list
}

// Gather puts extensions together. It refuses two parts of one name, and parts that could not be used, with an error that names the
// extensions.
func Gather(list ...Extension) (*Set, error) {
	g := gathering{set: &Set{Providers: map[string]Provider{}, ObjectStores: map[string]objectstore.Store{},
		Mailboxes: map[string]mailbox.Service{}, Notices: map[string]notice.Way{}}, brought: map[string]string{}, turns: map[string]bool{}}
	var types []credential.Type
	for _, e := range list {
		if e.Name == "" {
			return nil, fault.New(fault.Invalid, "an extension has no name; set Name to that of the package which brings it")
		}
		if err := g.parts(e); err != nil {
			return nil, err
		}
		types = append(types, e.Credentials...)
	}
	g.set.Credentials = credential.NewTypes(types...)
	for _, e := range list {
		if e.SourcesOf != nil {
			if err := g.sources(e.Name, e.SourcesOf(g.set)); err != nil {
				return nil, err
			}
		}
	}
	for _, e := range list {
		kinds := e.Kinds
		if e.KindsOf != nil {
			kinds = slices.Concat(kinds, e.KindsOf(g.set))
		}
		if err := g.kinds(e.Name, kinds); err != nil {
			return nil, err
		}
	}
	for _, s := range g.set.Sources {
		if from := g.brought["kind "+s.Kind()]; from == "" {
			return nil, fault.Newf(fault.Invalid, "the extension %q brings a source of the trigger %q, and no extension brings that kind", g.brought["source of the trigger "+s.Kind()], s.Kind())
		}
	}
	return g.set, nil
}

// gathering is a set that is being put together.
type gathering struct {
	set *Set
	// brought names the extension that has brought a part, by the sort of the part and its name.
	brought map[string]string
	// turns are the kinds with turns that providers have named and no family has made yet.
	turns map[string]bool
}

// claimName notes that an extension brings a part, and refuses a name that is taken. The argument what names the sort of part in errors.
func (g *gathering) claimName(what, name, from string) error {
	if name == "" {
		return fault.Newf(fault.Invalid, "a %s of the extension %q has no name", what, from)
	}
	key := what + " " + name
	if other, taken := g.brought[key]; taken {
		who := fmt.Sprintf("the extensions %q and %q both bring it", other, from)
		if other == from {
			who = fmt.Sprintf("the extension %q brings it twice", from)
		}
		return fault.Newf(fault.Conflict, "there are two of the %s %q: %s; leave one of them out, or call it differently", what, name, who)
	}
	g.brought[key] = from
	return nil
}

// parts takes everything but the kinds.
func (g *gathering) parts(e Extension) error {
	missing := func(what, name, field string) error {
		return fault.Newf(fault.Invalid, "the %s %q of the extension %q has no %s", what, name, e.Name, field)
	}
	for _, c := range e.Channels {
		if c == nil {
			return fault.Newf(fault.Invalid, "a channel of the extension %q is nil", e.Name)
		}
		name := c.Name()
		if name == human.InApp {
			return fault.Newf(fault.Conflict, "the extension %q brings a channel %q, which is the inbox; call it differently", e.Name, name)
		}
		if err := g.claimName("channel", name, e.Name); err != nil {
			return err
		}
	}
	g.set.Channels = append(g.set.Channels, e.Channels...)
	for _, p := range e.Providers {
		if err := g.claimName("provider", p.Name, e.Name); err != nil {
			return err
		}
		if p.New == nil {
			return missing("provider", p.Name, "New")
		}
		if kind := p.Turns; !kind.IsZero() {
			if !kind.IsMade() {
				return missing("kind", kind.Name, "configuration; make it with turn.Of")
			}
			if err := g.claimName("kind", kind.Name, e.Name); err != nil {
				return err
			}
			g.turns[kind.Name] = true
		}
		g.set.Providers[p.Name] = p
		g.set.providers = append(g.set.providers, p.Name)
	}
	for _, t := range e.Credentials {
		if err := g.claimName("credential type", t.Name, e.Name); err != nil {
			return err
		}
	}
	for _, s := range e.ObjectStores {
		if err := g.claimName("object store", s.Target, e.Name); err != nil {
			return err
		}
		if s.Store == nil {
			return missing("object store", s.Target, "Store")
		}
		g.set.ObjectStores[s.Target] = s.Store
	}
	for _, m := range e.Mailboxes {
		if err := g.claimName("mailbox", m.Name, e.Name); err != nil {
			return err
		}
		if m.Open == nil {
			return missing("mailbox", m.Name, "Open")
		}
		g.set.Mailboxes[m.Name] = m
	}
	for _, way := range e.Notices {
		if err := g.claimName("way to deliver notices", way.Name, e.Name); err != nil {
			return err
		}
		if way.Configure == nil {
			return missing("way to deliver notices", way.Name, "Configure")
		}
		if err := way.Check(); err != nil {
			return err
		}
		g.set.Notices[way.Name] = way
	}
	return g.sources(e.Name, e.Sources)
}

// sources takes sources of triggers.
func (g *gathering) sources(from string, sources []trigger.Source) error {
	for _, s := range sources {
		if s == nil {
			return fault.Newf(fault.Invalid, "a source of the extension %q is nil", from)
		}
		if err := g.claimName("source of the trigger", s.Kind(), from); err != nil {
			return err
		}
	}
	g.set.Sources = append(g.set.Sources, sources...)
	return nil
}

// kinds takes kinds. An older name of a kind is a name that no other kind may have.
func (g *gathering) kinds(from string, kinds []node.Kind) error {
	for _, k := range kinds {
		for _, name := range append([]string{k.About.Name}, k.About.Older...) {
			if g.turns[name] { // the provider has taken the name, and the family that does turns makes the kind
				delete(g.turns, name)
				continue
			}
			if err := g.claimName("kind", name, from); err != nil {
				return err
			}
		}
		if problem := node.Defect(k); problem != "" {
			return fault.Newf(fault.Invalid, "the kind %q of the extension %q %s", k.About.Name, from, problem)
		}
	}
	g.set.Kinds = append(g.set.Kinds, kinds...)
	return nil
}
