package human

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// naiveEnd says how a question ends after these outcomes, by looking at all that those who are left could still say. An empty text: it is
// open.
func naiveEnd(outcomes []string, left, approvals, rejections int) string {
	yes, no, none := 0, 0, 0
	for _, o := range outcomes {
		switch o {
		case Confirmed:
			yes++
		case Rejected:
			no++
		default:
			none++
		}
	}
	switch {
	case no >= rejections:
		return Rejected
	case yes >= approvals:
		return Confirmed
	case none >= approvals:
		return Neither
	}
	if left < 0 {
		return ""
	}
	for k := 0; k <= left; k++ { // k more of one kind
		if yes+k >= approvals || none+k >= approvals {
			return ""
		}
	}
	return Rejected
}

func TestTally_AgainstAModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		people := rapid.IntRange(1, 7).Draw(rt, "people")
		r := Request{MinApprovals: rapid.IntRange(1, 4).Draw(rt, "approvals"), MinRejections: rapid.IntRange(1, 4).Draw(rt, "rejections")}
		everybody := rapid.Bool().Draw(rt, "everybody")
		var votes []vote
		var outcomes []string
		for n := range people {
			o := rapid.SampledFrom([]string{Confirmed, Rejected, Neither}).Draw(rt, fmt.Sprint("vote ", n))
			votes, outcomes = append(votes, vote{person: fmt.Sprint("user:", n), outcome: o, options: []string{o}}), append(outcomes, o)
			left := people - n - 1
			if everybody {
				left = -1
			}
			want, got := naiveEnd(outcomes, left, r.MinApprovals, r.MinRejections), tally(r, votes, left)
			if got.outcome != want || got.ended != (want != "") {
				rt.Fatalf("after %v with %d left, %d approvals and %d rejections wanted: %q, want %q", outcomes, left, r.MinApprovals, r.MinRejections, got.outcome, want)
			}
			if !got.ended {
				if left == 0 {
					rt.Fatalf("everybody has voted %v, and it does not end", outcomes)
				}
				continue
			}
			if got.by.person == "" || got.outcome == Confirmed && got.by.outcome != Confirmed {
				rt.Fatalf("%s by the vote %+v", got.outcome, got.by)
			}
			return
		}
		if !everybody {
			rt.Fatal("it never ended")
		}
	})
}

func TestTally_Consensus(t *testing.T) {
	t.Parallel()
	r := Request{Type: Review, MinApprovals: 1, MinRejections: 2, Review: &ReviewRules{Consensus: true}}
	pass, fail := vote{person: "a", outcome: Confirmed}, vote{person: "b", outcome: Rejected}
	for _, c := range []struct {
		votes        []vote
		left         int
		outcome      string
		disagreement bool
	}{
		{votes: []vote{pass}, left: 2},
		{votes: []vote{pass, pass}, left: 1},
		{votes: []vote{pass, pass, pass}, left: 0, outcome: Confirmed},
		{votes: []vote{pass, fail}, left: 1, outcome: Rejected, disagreement: true},
		{votes: []vote{fail, pass}, left: 1, outcome: Rejected, disagreement: true},
		{votes: []vote{fail}, left: 2},
		{votes: []vote{fail, fail}, left: 1, outcome: Rejected},
		{votes: []vote{fail}, left: 0, outcome: Rejected},
		{votes: []vote{pass}, left: -1, outcome: Confirmed},
	} {
		got := tally(r, c.votes, c.left)
		if got.outcome != c.outcome || got.disagreement != c.disagreement || got.ended != (c.outcome != "") {
			t.Errorf("%d votes, %d left: %+v, want %q", len(c.votes), c.left, got, c.outcome)
		}
	}
}
