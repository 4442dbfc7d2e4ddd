package sheet

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Texts can be read, and the borders of controls seen, in both schemes (WCAG AA).
func TestPage_Contrast(t *testing.T) {
	t.Parallel()
	style, err := assets.ReadFile("style.css")
	if err != nil {
		t.Fatal(err)
	}
	schemes := regexp.MustCompile(`:root\{([^}]*)\}`).FindAllStringSubmatch(string(style), -1)
	if len(schemes) != 2 {
		t.Fatalf("%d schemes", len(schemes))
	}
	for n, scheme := range schemes {
		colors := map[string]float64{}
		for _, c := range regexp.MustCompile(`--([a-z-]+):#([0-9a-f]{3,6})`).FindAllStringSubmatch(scheme[1], -1) {
			colors[c[1]] = luminance(t, c[2])
		}
		for pair, least := range map[string]float64{
			"ink/page": 4.5, "ink/card": 4.5, "soft/card": 4.5, "accent/card": 4.5, "accent/page": 4.5, "on-accent/accent": 4.5, "bad/card": 4.5, "bad/bad-soft": 4.5, "ink/bad-soft": 4.5,
			"warn/warn-soft": 4.5, "soft/page": 4.5, "soft/tint": 4.5, "ink/tint": 4.5, "bad/tint": 4.5, "ink/accent-soft": 4.5, "line/card": 3, "good/good-soft": 3,
		} {
			front, back, _ := strings.Cut(pair, "/")
			a, isFront := colors[front]
			b, isBack := colors[back]
			if !isFront || !isBack {
				t.Errorf("scheme %d has no %s", n, pair)
				continue
			}
			if ratio := (max(a, b) + 0.05) / (min(a, b) + 0.05); ratio < least {
				t.Errorf("scheme %d: %s has a contrast of %.2f, want %g", n, pair, ratio, least)
			}
		}
	}
}

// luminance is how bright a colour is.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	if len(hex) == 3 {
		hex = string([]byte{hex[0], hex[0], hex[1], hex[1], hex[2], hex[2]})
	}
	n, err := strconv.ParseUint(hex, 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	part := func(shift uint) float64 {
		v := float64(n>>shift&0xff) / 255
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*part(16) + 0.7152*part(8) + 0.0722*part(0)
}
