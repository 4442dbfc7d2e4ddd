package node

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"tandem/text"
	"tandem/workflow"
)

// Registry holds the kinds of one program by name. It is filled when the program is put together and only read after
// that, so readers need no lock. The zero Registry is empty.
//
// It implements [workflow.Kinds]: definitions are checked against what kinds say about themselves.
type Registry struct {
	kinds map[string]Kind
	// plans are the kinds as graphs see them.
	plans map[string]workflow.Kind
	// older are the names of older files.
	older map[string]string
}

// kindName is TYPE.SUBTYPE.
var kindName = regexp.MustCompile(`^[A-Z][A-Z0-9_]*\.[A-Z][A-Z0-9_]*$`)

// Register adds kinds. It panics for a kind with a [Defect] or a name that is taken, since that is a mistake in the
// program.
func (r *Registry) Register(kinds ...Kind) {
	for _, k := range kinds {
		problem := Defect(k)
		if _, taken := r.kinds[k.About.Name]; taken {
			problem = "is registered twice"
		}
		if problem != "" {
			panic(fmt.Sprintf("node: kind %q %s", k.About.Name, problem))
		}
		if r.kinds == nil {
			r.kinds = map[string]Kind{}
		}
		r.kinds[k.About.Name] = k
		r.addKind(k.workflowKind(), k.About.Older)
	}
}

func (r *Registry) addKind(k workflow.Kind, older []string) {
	if r.plans == nil {
		r.plans, r.older = map[string]workflow.Kind{}, map[string]string{}
	}
	r.plans[k.Name] = k
	for _, name := range older {
		if other, taken := r.older[name]; taken {
			panic(fmt.Sprintf("node: %q is an older name of both %q and %q", name, other, k.Name))
		}
		r.older[name] = k.Name
	}
}

// Kind implements [workflow.Kinds].
func (r *Registry) Kind(name string) (workflow.Kind, bool) {
	k, ok := r.plans[name]
	return k, ok
}

// Alias implements [workflow.Kinds]: names in any letter case, step types without a subtype, and renamed subtypes.
func (r *Registry) Alias(typ, subtype string) (string, bool) {
	name := strings.ToUpper(strings.TrimSpace(typ))
	if subtype = strings.ToUpper(strings.TrimSpace(subtype)); subtype != "" {
		name += "." + subtype
	}
	if _, ok := r.plans[name]; ok {
		return name, true
	}
	target, ok := r.older[name]
	return target, ok
}

// Defect says why a kind cannot be registered: its name is not TYPE.SUBTYPE, a text is missing in one of the languages, there is not
// exactly one way to run it, or the way lacks a part. It is empty for a kind that can.
func Defect(k Kind) string {
	if !kindName.MatchString(k.About.Name) {
		return "has no name of the form TYPE.SUBTYPE"
	}
	for _, language := range []string{text.Chinese, text.English} { // an extension has no catalogue for others
		if k.About.Title.Words(language) == "" {
			return "has no title in " + language
		}
		if k.About.Description.Words(language) == "" {
			return "has no description in " + language
		}
	}
	ways := 0
	for _, set := range []bool{k.Run != nil, k.Scope != nil, k.Steps != nil} {
		if set {
			ways++
		}
	}
	switch {
	case ways == 0:
		return "has neither Run nor Scope nor Steps"
	case ways > 1:
		return "has more than one of Run, Scope and Steps; keep one"
	case k.Steps != nil && (k.Steps.Program == "" || k.Steps.Open == nil || k.Steps.Step == nil || k.Steps.Close == nil):
		return "has steps that lack Program, Open, Step or Close"
	case k.Scope != nil && (k.Scope.Open == nil || k.Scope.Iteration == nil || k.Scope.Close == nil):
		return "has a scope that lacks Open, Iteration or Close"
	}
	return ""
}

// Get returns a kind by name.
func (r *Registry) Get(name string) (Kind, bool) {
	k, ok := r.kinds[name]
	return k, ok
}

// Names lists the kinds, sorted.
func (r *Registry) Names() []string { return slices.Sorted(maps.Keys(r.kinds)) }

// List returns the kinds in the order of their names.
func (r *Registry) List() []Kind {
	list := make([]Kind, 0, len(r.kinds))
	for _, name := range r.Names() {
		list = append(list, r.kinds[name])
	}
	return list
}

// Offered lists the kinds that authors can use, sorted by name.
func (r *Registry) Offered() []Kind {
	return slices.DeleteFunc(r.List(), func(k Kind) bool { return k.About.Inner })
}
