package form

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"tandem/payload"
	"tandem/text"
)

// SchemaWords says what is wrong to people who have never seen the schema, in their language. In English these are the words of the
// validator, unless there are plainer ones.
func SchemaWords(p payload.SchemaProblem) text.Text {
	switch {
	case p.Kind == nil && p.Wild != "":
		return text.Of("the number %s is out of range", p.Wild)
	case p.Kind == nil:
		return unlike().Saying(text.English, p.Message)
	}
	if plain := plainWords(p.Kind); !plain.IsZero() {
		return plain
	}
	return schemaWords(p.Kind).Saying(text.English, p.Message)
}

// unlike is all that can be said of something that no kind is known of.
func unlike() text.Text { return text.Of("it is not as the schema wants it") }

// plainWords are words that are plain in English too; none for what the validator says as well.
func plainWords(k jsonschema.ErrorKind) text.Text {
	switch k := k.(type) {
	case *kind.Maximum:
		return text.Of("it is more than %s", rational(k.Want))
	case *kind.Minimum:
		return text.Of("it is less than %s", rational(k.Want))
	case *kind.ExclusiveMaximum:
		return text.Of("it is not less than %s", rational(k.Want))
	case *kind.ExclusiveMinimum:
		return text.Of("it is not more than %s", rational(k.Want))
	case *kind.MultipleOf:
		return text.Of("it is not a multiple of %s", rational(k.Want))
	case *kind.MinLength:
		return text.Of("it has less than %d characters", k.Want)
	case *kind.MaxLength:
		return text.Of("it has more than %d characters", k.Want)
	case *kind.MinItems:
		return text.Of("choose at least %d", k.Want)
	case *kind.MaxItems:
		return text.Of("choose at most %d", k.Want)
	case *kind.Type:
		switch strings.Join(k.Want, " ") {
		case "integer":
			return text.Of("a whole number was expected")
		case "number":
			return text.Of("a number was expected").For("by a schema")
		}
	}
	return text.Text{}
}

// schemaWords says what a schema refuses. Every kind of the validator has words of its own; a test looks for one that has none.
func schemaWords(k jsonschema.ErrorKind) text.Text {
	switch k := k.(type) {
	case *kind.Type:
		names := make([]text.Text, len(k.Want))
		for i, name := range k.Want {
			names[i] = typeName(name)
		}
		return text.Of("its type is not %s", either(names))
	case *kind.Enum:
		list, plain := shownValues(k.Want)
		if !plain {
			return text.Of("it is none of the values that are allowed")
		}
		return text.Of("choose one of %s", list)
	case *kind.Const:
		value, plain := shownValues([]any{k.Want})
		if !plain {
			return text.Of("it is not what it has to be")
		}
		return text.Of("it has to be %s", value)
	case *kind.Format:
		return text.Of("it is not a valid %s", formatName(k.Want))
	case *kind.Pattern:
		return text.Of("it does not have the form that is wanted")
	case *kind.UniqueItems:
		return text.Of("items %d and %d are the same", k.Duplicates[0]+1, k.Duplicates[1]+1)
	case *kind.AdditionalItems:
		return text.Of("the last %d items are too many", k.Count)
	case *kind.Contains:
		return text.Of("no item is as it should be")
	case *kind.MinContains:
		return text.Of("at least %d items have to be as they should be, and %d are", k.Want, len(k.Got))
	case *kind.MaxContains:
		return text.Of("at most %d items may be like that, and %d are", k.Want, len(k.Got))
	}
	return wholeSchemaWords(k)
}

// wholeSchemaWords says what a schema refuses of objects, and of a value as a whole.
func wholeSchemaWords(k jsonschema.ErrorKind) text.Text {
	switch k := k.(type) {
	case *kind.Required:
		return text.Of("%s is missing", quotedNames(k.Missing))
	case *kind.Dependency:
		return text.Of("with “%s” it needs %s", k.Prop, quotedNames(k.Missing))
	case *kind.DependentRequired:
		return text.Of("with “%s” it needs %s", k.Prop, quotedNames(k.Missing))
	case *kind.AdditionalProperties:
		return text.Of("%s may not be there", quotedNames(k.Properties))
	case *kind.PropertyNames:
		return text.Of("“%s” cannot be a name", k.Property)
	case *kind.MinProperties:
		return text.Of("it needs at least %d fields", k.Want)
	case *kind.MaxProperties:
		return text.Of("it may have at most %d fields", k.Want)
	case *kind.Not:
		return text.Of("such a value is not allowed")
	case *kind.AllOf:
		return text.Of("it does not fulfil all that is wanted")
	case *kind.AnyOf:
		return text.Of("it has none of the forms that are allowed")
	case *kind.OneOf:
		if len(k.Subschemas) > 0 {
			return text.Of("it has several of the forms, and only one is allowed")
		}
		return text.Of("it has to have one of the forms that are allowed")
	case *kind.FalseSchema:
		return text.Of("nothing may be filled in here")
	case *kind.ContentEncoding:
		return text.Of("it is not encoded as %s", k.Want)
	case *kind.ContentMediaType:
		return text.Of("it is not of the type %s", k.Want)
	case *kind.ContentSchema:
		return text.Of("what is encoded in it is not as it should be")
	case *kind.InvalidJsonValue:
		return text.Of("it is not a value of JSON")
	case *kind.RefCycle:
		return text.Of("its schema refers to itself without end; tell the author of the workflow")
	case *kind.Schema, *kind.Group, *kind.Reference: // what they are about is told by their causes
		return text.Of("it was not accepted")
	}
	return unlike()
}

func typeName(name string) text.Text {
	if known, ok := map[string]text.Text{
		"string": text.Of("a text"), "number": text.Of("a number"), "integer": text.Of("a whole number"),
		"boolean": text.Of("yes or no (true or false)"),
		"array":   text.Of("a list"), "object": text.Of("a JSON object"), "null": text.Of("nothing (null)"),
	}[name]; ok {
		return known
	}
	return text.As(" " + name)
}

func formatName(name string) text.Text {
	mail, address, host := text.Of("mail address"), text.Of("address of the web"), text.Of("name of a host")
	if known, ok := map[string]text.Text{
		"email": mail, "idn-email": mail, "date": text.Of("date (such as 2027-03-31)"), "time": text.Of("time (such as 09:30:00Z)"),
		"date-time": text.Of("date and time (such as 2027-03-31T09:30:00Z)"), "duration": text.Of("duration (such as P1DT2H)"),
		"uri": address, "iri": address, "uri-reference": address, "iri-reference": address, "hostname": host, "idn-hostname": host,
		"ipv4": text.Of("IPv4 address"), "ipv6": text.Of("IPv6 address"), "uuid": text.As(" UUID"),
		"regex": text.Of("regular expression"), "json-pointer": text.Of("JSON pointer"),
	}[name]; ok {
		return known
	}
	return text.As(" " + name)
}

// either lists what may be.
func either(list []text.Text) text.Text {
	if len(list) == 0 {
		return text.Text{}
	}
	all := list[len(list)-1]
	for i := len(list) - 2; i >= 0; i-- {
		all = text.Of("%s or %s", list[i], all)
	}
	return all
}

// listed lists texts.
func listed(list []string) text.Text {
	if len(list) == 0 {
		return text.Text{}
	}
	all := text.As(list[len(list)-1])
	for i := len(list) - 2; i >= 0; i-- {
		all = text.Of("%s, %s", list[i], all)
	}
	return all
}

// shownValues lists values as people read them; not plain: some of them are lists or objects.
func shownValues(values []any) (list text.Text, plain bool) {
	texts := make([]string, len(values))
	for i, v := range values {
		switch v.(type) {
		case []any, map[string]any:
			return text.Text{}, false
		case nil:
			texts[i] = "null"
		default:
			texts[i] = fmt.Sprint(v)
		}
	}
	return listed(texts), true
}

func quotedNames(names []string) text.Text {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = "“" + name + "”"
	}
	return listed(texts)
}

// rational writes a number as people do.
func rational(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'f', -1, 64)
}
