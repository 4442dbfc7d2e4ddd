package expr

import (
	"fmt"
)

type lambdaUse uint8

const (
	lambdaNone lambdaUse = iota
	lambdaOptional
	lambdaRequired
)

// function is one builtin. apply gets the arguments without the lambda, which is the call's; it pays for its own loops.
type function struct {
	name        string
	least, most int // arguments, not counting the lambda
	lambda      lambdaUse
	apply       func(r *run, c *call, args []any) (any, error)
}

const anyNumber = 100 // of arguments

// functions is read-only.
var functions = [...]function{
	{"abs", 1, 1, lambdaNone, fnAbs},
	{"all", 1, 1, lambdaOptional, fnAll},
	{"any", 1, 1, lambdaOptional, fnAny},
	{"avg", 1, 1, lambdaOptional, fnAvg},
	{"bool", 1, 1, lambdaNone, fnBool},
	{"ceil", 1, 1, lambdaNone, fnCeil},
	{"contains", 2, 2, lambdaNone, fnContains},
	{"count", 1, 1, lambdaOptional, fnCount},
	{"date", 1, 1, lambdaNone, fnDate},
	{"duration", 1, 1, lambdaNone, fnDuration},
	{"ends_with", 2, 2, lambdaNone, fnEndsWith},
	{"filter", 1, 1, lambdaRequired, fnFilter},
	{"first", 1, 1, lambdaNone, fnFirst},
	{"floor", 1, 1, lambdaNone, fnFloor},
	{"format_date", 2, 2, lambdaNone, fnFormatDate},
	{"has", 2, 2, lambdaNone, fnHas},
	{"int", 1, 1, lambdaNone, fnInt},
	{"join", 2, 2, lambdaNone, fnJoin},
	{"keys", 1, 1, lambdaNone, fnKeys},
	{"last", 1, 1, lambdaNone, fnLast},
	{"len", 1, 1, lambdaNone, fnLen},
	{"lower", 1, 1, lambdaNone, fnLower},
	{"map", 1, 1, lambdaRequired, fnMap},
	{"matches", 2, 2, lambdaNone, fnMatches},
	{"max", 1, anyNumber, lambdaOptional, fnMax},
	{"min", 1, anyNumber, lambdaOptional, fnMin},
	{"now", 0, 0, lambdaNone, fnNow},
	{"num", 1, 1, lambdaNone, fnNum},
	{"replace", 3, 3, lambdaNone, fnReplace},
	{"round", 1, 2, lambdaNone, fnRound},
	{"slice", 2, 3, lambdaNone, fnSlice},
	{"sort", 1, 2, lambdaOptional, fnSort},
	{"split", 2, 2, lambdaNone, fnSplit},
	{"starts_with", 2, 2, lambdaNone, fnStartsWith},
	{"str", 1, 1, lambdaNone, fnStr},
	{"sum", 1, 1, lambdaOptional, fnSum},
	{"trim", 1, 1, lambdaNone, fnTrim},
	{"unique", 1, 1, lambdaOptional, fnUnique},
	{"upper", 1, 1, lambdaNone, fnUpper},
	{"values", 1, 1, lambdaNone, fnValues},
}

func lookupFunction(name string) *function {
	for i := range functions {
		if functions[i].name == name {
			return &functions[i]
		}
	}
	return nil
}

func functionNames() []string {
	var names []string
	for _, f := range functions {
		names = append(names, f.name)
	}
	return names
}

// methods are the spellings of older files, each with its function. It is read-only.
var methods = [...]struct{ method, function string }{
	{"endsWith", "ends_with"},
	{"includes", "contains"},
	{"startsWith", "starts_with"},
	{"toLowerCase", "lower"},
	{"toUpperCase", "upper"},
	{"trim", "trim"},
}

func method(name string) *function {
	for _, m := range methods {
		if m.method == name {
			f := *lookupFunction(m.function)
			f.name = m.method // for its errors
			return &f
		}
	}
	return nil
}

func methodNames() []string {
	var names []string
	for _, m := range methods {
		names = append(names, m.method)
	}
	return names
}

func (f *function) arity() string {
	switch {
	case f.most == anyNumber:
		return fmt.Sprintf("%d to %d arguments", f.least, f.most)
	case f.least != f.most:
		return fmt.Sprintf("%d or %d arguments", f.least, f.most)
	case f.least == 1:
		return "1 argument"
	}
	return fmt.Sprintf("%d arguments", f.least)
}
