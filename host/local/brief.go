package local

import (
	"time"

	"tandem/host/turns"
	"tandem/node"
)

// briefRun is a run that takes no longer than to hand it to a worker.
type briefRun struct {
	job  node.Job
	said *said
}

// collectBrief has a brief run done, at the latest with the next call of finishBriefs.
func (o *owner) collectBrief(job node.Job, said *said) {
	if o.briefs == nil {
		o.briefs = turns.NewBatches(o.runOnTheSpot, &o.host.briefRoom)
	}
	o.briefs.Add(briefRun{job, said})
}

// finishBriefs waits for the brief runs that were collected, and hands on how they have ended.
func (o *owner) finishBriefs() {
	if o.briefs != nil {
		o.briefs.Finish(o.pushOutcomes)
	}
}

func (o *owner) runOnTheSpot(b *briefRun) outcome {
	b.said.began = time.Now().UnixMilli()
	return outcome{b.said.attempt, o.revision.Run(o.host.ctx, b.job), b.said}
}

func (o *owner) pushOutcomes(list []outcome) {
	o.mu.Lock()
	for i := range list {
		o.queue = append(o.queue, &list[i])
	}
	o.mu.Unlock()
	o.nudge()
}
