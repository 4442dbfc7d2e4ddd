// Package expr is the one expression language of Tandem: conditions, rules and expression conversions are written in it.
//
// An expression is one value computed from named data. There are no statements, no assignments, no user-defined
// functions beyond the one-expression lambda, and no host objects, so every evaluation ends; how much work and memory it
// may take is bounded by [Limits]. [Compile] parses, [Program.Eval] evaluates. A Program is immutable and may be used by
// many goroutines at once.
//
// The package is pure: it reads no clock, no environment and no file. What "now" is, and when an evaluation has taken
// too long, the caller says. It resolves no placeholder either: it finds them and asks [Env] for their values.
//
// It may import fault only; everything above may import it.
//
// # Why its own parser and evaluator
//
// The language differs from the ready-made ones in the places that matter: lambdas are spelled x => x.a, `===` and
// methods such as .includes() are accepted, `a || b` yields an operand, equality never converts while ordering of
// different types is an error, a missing field is null while an unknown root is an error with a position, and
// placeholders are tokens. Under expr-lang all of that would have to be undone operator by operator, and its limits
// count allocations of its virtual machine, not steps and bytes of every builtin. A small parser and a tree evaluator
// in which each loop pays for itself give exact semantics and limits that fall on the same step everywhere.
//
// # Values
//
// Data is what JSON holds: nil, bool, string, []any, map[string]any and numbers. Numbers may come as int64 (or another
// Go integer), float64 or [encoding/json.Number]; whole numbers stay exact over 2^53, and those beyond int64 still compare and
// print exactly. Dates and durations exist during an evaluation; in a result a date is RFC 3339 text and a duration is
// a number of seconds. Results share structure with the data they were read from: treat both as read-only.
//
// # Syntax
//
//	a ? b : c                               chosen by truth
//	a || b   a or b   a ?? b                the first true operand else the last; ?? the first that is not null
//	a && b   a and b                        the first false operand else the last
//	not a                                   looser than comparison: not a == b is not (a == b)
//	== != === !==                           never convert; 1 == 1.0; lists and objects are compared in depth
//	< <= > >=   x in y   x not in y         ordering with null is false, of different types an error
//	+ -   * / %                             numbers; + also joins texts, or a text with a number or a boolean
//	!a   -a                                 tighter than every binary operator
//	a.b   a?.b   a[i]   a?.[i]   a.0        a missing field or index is null, and so is any field of null
//
// `??` next to `||` or `&&` wants parentheses, as in JavaScript. `in` looks into a list, for a key of an object, or for a
// part of a text. Literals are those of JSON, with texts in either quote and plain names as keys of objects;
// `undefined` is null. A name followed by "(" is a function, any other name is data, so a field called count is fine.
//
// Truth is JavaScript's: false, null, 0, NaN and the empty text are false; all else, also [] and {}, is true.
//
// `.length` counts the characters of a text, the elements of a list or the keys of an object that has no field of that
// name. The methods are .includes(x), .startsWith(x), .endsWith(x), .toLowerCase(), .toUpperCase() and .trim().
//
// # Arithmetic
//
// Whole numbers stay whole while they can (6 / 2 is 3, 7 / 2 is 3.5). Division by zero, overflow and anything not finite
// is an error. A date plus or minus a duration is a date, the difference of two dates is a duration, and durations can
// be added, scaled by a number and divided by each other.
//
// # Functions
//
// A null list is the empty list, a null text stays null, and a question about null is answered with false.
//
//	len(x)                                  characters, elements or keys; 0 for null
//	lower(s) upper(s) trim(s)
//	split(s, sep) join(list, sep)           split by an empty text gives the characters
//	contains(x, y)                          y in x
//	starts_with(s, x) ends_with(s, x)
//	matches(s, pattern)                     finds the pattern anywhere in s; RE2 syntax, linear time
//	replace(s, old, new)                    every occurrence, literally
//	int(x) num(x) str(x) bool(x)            int cuts towards zero; str gives compact JSON of anything but text;
//	                                        bool reads 'true', 'false', '1', '0' and the empty text
//	abs(n) floor(n) ceil(n) round(n, digits)  round goes half away from zero
//	min(…) max(…)                           of their arguments, or of a list; null of an empty list
//	sum(list) avg(list)                     0 and null of an empty list
//	keys(object) values(object)             in the order of the sorted keys
//	has(object, key)                        present, even if null; has(list, index)
//	first(list) last(list)                  null of an empty list
//	slice(x, start, end)                    of a list or text; negative positions count from the end
//	sort(list, x => key, 'desc')            stable, nulls last; key and direction may be left out
//	unique(list)                            keeps the first of equal elements
//	any(list, x => …) all(list, x => …)     without a lambda the elements themselves are judged
//	map(list, x => …) filter(list, x => …)
//	count(list, x => …)                     without a lambda the number of elements
//	now()                                   the start of the activation, in UTC
//	date(x)                                 of RFC 3339 text, '2006-01-02', '2006-01-02T15:04:05' (UTC) or Unix seconds
//	duration(x)                             of '1h30m', '7d', '2w', 'PT1H30M' or a number of seconds
//	format_date(x, layout)                  see below
//
// sum, avg, min, max and unique take a lambda too: sum(items, x => x.price).
//
// The layout of format_date is that of strftime: %Y %y %m %d %e %j %H %I %M %S %L (milliseconds) %p %a %A %b %B %F (%Y-%m-%d) %T (%H:%M:%S)
// %z (+0200) %:z (+02:00) %s (Unix seconds) %%, and %-m %-d %-H %-I %-M %-S without a leading zero. One without a percent sign is written
// with letters: YYYY-MM-DD HH:mm:ss, yyyy年M月d日, with other words in square brackets. Names are English. The date is shown with its own
// offset, UTC if it has none.
//
// # Placeholders
//
// {{name}}, {{{name}}} and ${name} stand for values, never for source text: whatever the value holds, it cannot change the
// expression. A text literal that is exactly one placeholder is its value with its type; a literal that mixes text and
// placeholders is their concatenation, with anything but text as compact JSON. In a literal `\{{` and `\${` are just text.
// [Program.Placeholders] lists what was found; Eval looks each one up under [PlaceholderName].
//
// # Errors
//
// Every error is a *[tandem/fault.Error] with the code expression_error. Its details have "position", an object with line and
// column counted from 1, and where it applies "nearest" (the known name most like the one written) or "limit" (steps, bytes, time,
// result).
package expr
