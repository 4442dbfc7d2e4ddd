package dify

import (
	"strings"
	"testing"
)

func TestModules(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"import json,requests\n":                                      "requests|",
		"import json_repair\nfrom pandas.io import json as j\n":       "json_repair pandas|",
		"def main():\n    import numpy as np, math\n    import numpy": "numpy|",
		"import json, re, datetime\nfrom urllib.parse import quote":   "|",
		"import os.path\nfrom subprocess import run":                  "|os subprocess",
		"text = 'we import pandas from abroad'\n# import numpy":       "|",
		"from . import x": "|",
	} {
		absent, reaching := modules(source)
		if got := strings.Join(absent, " ") + "|" + strings.Join(reaching, " "); got != want {
			t.Errorf("%q: %s, want %s", source, got, want)
		}
	}
}
