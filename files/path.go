package files

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"tandem/fault"
	"tandem/shortage"
	"tandem/text"
)

const (
	maxPath = 1024
	maxName = 255
)

// Clean checks a path as people, data and models write it, and returns it without detours. "." is the directory itself.
// Paths that could lead out are forbidden_path, those that cannot be a name on every system are invalid_input.
func Clean(name string) (string, error) {
	shown := name
	if len(shown) > 100 {
		shown = strings.ToValidUTF8(shown[:100], "") + "…"
	}
	forbidden := func(why text.Text) (string, error) {
		return "", fault.Newf(fault.ForbiddenPath, "the path %q %s; give a path inside the workspace, such as %q", shown, why, "reports/today.txt").With("path", shown)
	}
	invalid := func(why text.Text) (string, error) {
		return "", fault.Newf(fault.InvalidInput, "the path %q %s", shown, why).With("path", shown)
	}
	switch {
	case strings.TrimSpace(name) == "":
		return invalid(text.Of("is empty"))
	case strings.HasPrefix(name, "/"), strings.HasPrefix(name, `\`), len(name) > 1 && name[1] == ':':
		return forbidden(text.Of("is absolute"))
	case slices.Contains(strings.FieldsFunc(name, func(r rune) bool { return r == '/' || r == '\\' }), ".."):
		return forbidden(text.Of(`has ".." in it`))
	case !utf8.ValidString(name):
		return invalid(text.Of("is not UTF-8"))
	case strings.ContainsFunc(name, func(r rune) bool { return r < 0x20 || r == 0x7f }):
		return invalid(text.Of("has a control character in it"))
	case strings.ContainsAny(name, `\:`):
		return invalid(text.Of(`has a \ or : in it; separate directories with /`))
	case len(name) > maxPath:
		return invalid(text.Of("is too long; at most 1024 bytes are taken"))
	}
	name = path.Clean(name)
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case strings.EqualFold(part, reserved):
			return forbidden(text.Of("is kept for what is under way"))
		case len(part) > maxName:
			return invalid(text.Of("has a name of more than 255 bytes in it"))
		case part != "." && strings.TrimRight(part, ". ") != part:
			return invalid(text.Of("has a name in it that ends with a dot or a space, which not every system can keep"))
		case deviceName(part):
			return invalid(text.Of("has the name of a device in it, which not every system can keep"))
		}
	}
	return name, nil
}

// deviceName says that a name, with any extension, means a device on some systems.
func deviceName(name string) bool {
	base, _, _ := strings.Cut(name, ".")
	base = strings.ToUpper(strings.TrimRight(base, " "))
	switch base {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$":
		return true
	}
	for _, prefix := range []string{"COM", "LPT"} {
		if rest, ok := strings.CutPrefix(base, prefix); ok &&
			(len(rest) == 1 && rest >= "0" && rest <= "9" || rest == "¹" || rest == "²" || rest == "³") {
			return true
		}
	}
	return false
}

// named is Clean for what must be below the directory and not the directory itself.
func named(name string) (string, error) {
	name, err := Clean(name)
	if err == nil && name == "." {
		return "", fault.New(fault.InvalidInput, `"." is the files directory itself; name something in it`).With("path", ".")
	}
	return name, err
}

// Match says whether a path fits a pattern: * ? [a-z] within a name and ** for any number of directories. A pattern
// without a slash is about the last name alone.
func Match(pattern, name string) bool {
	if !strings.Contains(pattern, "/") {
		ok, err := path.Match(pattern, path.Base(name))
		return ok && err == nil
	}
	return matchParts(strings.Split(strings.TrimPrefix(pattern, "./"), "/"), strings.Split(name, "/"))
}

// matchParts takes one row of a table per part of the pattern, so that no pattern is slow.
func matchParts(pattern, name []string) bool {
	fits := make([]bool, len(name)+1) // fits[i]: the pattern so far fits the first i names
	fits[0] = true
	for _, p := range pattern {
		next := make([]bool, len(name)+1)
		for i := range next {
			switch {
			case p == "**":
				next[i] = fits[i] || i > 0 && next[i-1]
			case i > 0 && fits[i-1]:
				ok, err := path.Match(p, name[i-1])
				next[i] = ok && err == nil
			}
		}
		fits = next
	}
	return fits[len(name)]
}

// CheckPattern refuses patterns that fit nothing because they are written wrongly.
func CheckPattern(pattern string) error {
	for p := range strings.SplitSeq(pattern, "/") {
		if _, err := path.Match(p, ""); err != nil {
			return fault.Newf(fault.InvalidConfig, `"pattern" cannot be read: %q has a bracket that does not end`, p).With("path", "configurations.pattern")
		}
	}
	return nil
}

// problem says what a system's error means for the caller that asked for a path.
func problem(name string, err error) error {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f
	}
	of := func(code fault.Code, what text.Text) error {
		return fault.Newf(code, "%q %s", name, what).With("path", name).WithCause(err)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return of(fault.NotFound, text.Of("does not exist in the files of the workspace"))
	case errors.Is(err, syscall.ENOTEMPTY):
		return of(fault.Conflict, text.Of("is a directory that is not empty; set recursive to true if all of it is meant"))
	case errors.Is(err, fs.ErrExist):
		return of(fault.Conflict, text.Of("exists already; set overwrite to true to replace it"))
	case errors.Is(err, syscall.ELOOP), escapes(err):
		return of(fault.ForbiddenPath, text.Of("leads out of the workspace by a link"))
	case errors.Is(err, syscall.ENAMETOOLONG):
		return of(fault.InvalidInput, text.Of("is too long a name"))
	case errors.Is(err, syscall.ENOTDIR):
		return of(fault.InvalidInput, text.Of("goes through a file as if it were a directory"))
	case errors.Is(err, syscall.EISDIR):
		return of(fault.InvalidInput, text.Of("is a directory; name a file"))
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return of(fault.Internal, text.Of("could not be written: the disk is full"))
	case shortage.Is(err):
		return shortage.Or(err, fault.From(of(fault.Internal, text.Of("could not be worked on"))))
	case errors.Is(err, fs.ErrPermission):
		return of(fault.ForbiddenPath, text.Of("may not be read or written by the server; ask its operator"))
	}
	return of(fault.Internal, text.Of("could not be worked on; the operator's log has the detail"))
}

// escapes says that an os.Root refused a path. Its error is known by its words only.
func escapes(err error) bool {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return strings.Contains(err.Error(), "path escapes from parent")
}
