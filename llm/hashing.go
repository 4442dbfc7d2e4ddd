package llm

import (
	"math"
	"slices"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// HashDimensions is the length of the vectors that [HashEmbed] makes.
const HashDimensions = 256

// HashEmbed turns a text into a vector without a model: texts that share words, parts of words or Chinese characters lie
// close to each other. It knows nothing of meaning. The same text always gives the same vector, so vectors may be kept;
// its length is 1, or 0 for a text without letters and digits.
//
// Every word counts, and so do its pieces of three and four characters, which bring "order" and "orders" together.
// Scripts that are written without spaces count by characters and pairs of neighbours. A feature that comes often counts
// by the root of its number, so that no frequent word drowns the rest.
func HashEmbed(text string) []float32 {
	counts := map[uint64]int{}
	var word, run []rune
	flush := func() {
		countWord(counts, word)
		countRun(counts, run)
		word, run = word[:0], run[:0]
	}
	// Full-width and composed forms are the same text to a reader.
	for _, r := range norm.NFKC.String(text) {
		r = unicode.ToLower(r)
		switch {
		case spaceless(r):
			if len(word) > 0 {
				flush()
			}
			run = append(run, r)
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r) && len(word) > 0:
			if len(run) > 0 {
				flush()
			}
			word = append(word, r)
		default:
			flush()
		}
	}
	flush()

	features := make([]uint64, 0, len(counts))
	for f := range counts {
		features = append(features, f)
	}
	// Sums of floats depend on their order.
	slices.Sort(features)
	var sums [HashDimensions]float64
	for _, f := range features {
		// Features of single characters are many and say little.
		weight := math.Sqrt(float64(counts[f]))
		if f>>63 == 1 {
			weight *= lightWeight
		}
		if mixed := mix(f); mixed>>32&1 == 0 {
			sums[mixed%HashDimensions] += weight
		} else {
			sums[mixed%HashDimensions] -= weight
		}
	}
	var square float64
	for _, s := range sums {
		square += s * s
	}
	vector := make([]float32, HashDimensions)
	if square == 0 {
		return vector
	}
	length := math.Sqrt(square)
	for i, s := range sums {
		vector[i] = float32(s / length)
	}
	return vector
}

// lightWeight is what pieces of words and single characters count, beside 1 for words and pairs of characters.
const lightWeight = 0.5

// spaceless says that a script puts no spaces between words.
func spaceless(r rune) bool {
	return r > 0x2E00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) || r >= 0x0E00 &&
		unicode.In(r, unicode.Thai, unicode.Lao)
}

func countWord(counts map[uint64]int, word []rune) {
	if len(word) == 0 {
		return
	}
	counts[feature('w', word)&^(1<<63)]++
	// The edges are part of the pieces: the beginning of a word says more than its middle.
	edged := make([]rune, 0, len(word)+2)
	edged = append(append(append(edged, '^'), word...), '$')
	for n := 3; n <= 4; n++ {
		for i := 0; i+n <= len(edged); i++ {
			counts[feature('p', edged[i:i+n])|1<<63]++
		}
	}
}

func countRun(counts map[uint64]int, run []rune) {
	for i := range run {
		counts[feature('c', run[i:i+1])|1<<63]++
		if i > 0 {
			counts[feature('b', run[i-1:i+1])&^(1<<63)]++
		}
	}
}

// feature is FNV-1a over a family and characters. Its highest bit is left to say that it is light.
func feature(family rune, characters []rune) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	step := func(r rune) {
		for shift := 0; shift < 24; shift += 8 {
			h = (h ^ uint64(r>>shift)&0xff) * prime
		}
	}
	step(family)
	for _, r := range characters {
		step(r)
	}
	return h
}

// mix spreads what FNV leaves in few bits (the finalizer of SplitMix64).
func mix(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
