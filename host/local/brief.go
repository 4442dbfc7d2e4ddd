package local

import (
	"runtime"
	"sync"
	"time"

	"tandem/node"
)

// briefRun is a run that takes no longer than to hand it to a worker.
type briefRun struct {
	job  node.Job
	said *said
}

const (
	// maxBrief is how many brief runs are collected before they are done.
	maxBrief = 256
	// briefShare is how many of them are worth a goroutine.
	briefShare = 32
)

// collectBrief has a brief run done, at the latest with the next call of runBrief.
func (o *owner) collectBrief(job node.Job, said *said) {
	if o.briefs = append(o.briefs, briefRun{job, said}); len(o.briefs) == maxBrief {
		o.runBrief()
	}
}

// runBrief does the brief runs that were collected, and hands on how they have ended.
func (o *owner) runBrief() {
	list := o.briefs
	shareBrief(list, o.runOnTheSpot, func(m outcome) { o.push(m) })
	clear(list)
	o.briefs = list[:0]
}

// shareBrief does brief runs, many of them shared among the processors, and tells how they have ended, in their order.
func shareBrief(list []briefRun, run func(*briefRun) outcome, ended func(outcome)) {
	if len(list) < 2*briefShare {
		for i := range list {
			ended(run(&list[i]))
		}
		return
	}
	outcomes := make([]outcome, len(list))
	size := max(briefShare, (len(list)+runtime.GOMAXPROCS(0)-1)/runtime.GOMAXPROCS(0))
	var parts sync.WaitGroup
	for from := 0; from < len(list); from += size {
		parts.Go(func() {
			for i := from; i < min(from+size, len(list)); i++ {
				outcomes[i] = run(&list[i])
			}
		})
	}
	parts.Wait()
	for _, m := range outcomes {
		ended(m)
	}
}

func (o *owner) runOnTheSpot(b *briefRun) outcome {
	b.said.began = time.Now().UnixMilli()
	return outcome{b.said.attempt, o.revision.Run(o.host.ctx, b.job), b.said}
}
