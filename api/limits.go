package api

// LimitSettings says what a workspace is limited to and how long it keeps things. What is 0 or left out is not limited, or is kept for
// ever.
type LimitSettings struct {
	Running            int64             `json:"running,omitempty" minimum:"0" maximum:"1000000" doc:"how many executions run at once; more wait for their turn"`
	RunningPerUser     int64             `json:"running_per_user,omitempty" minimum:"0" maximum:"1000000" doc:"how many executions of one user run at once; more wait for their turn"`
	Starts             StartWindow       `json:"starts,omitzero" doc:"how many executions requests may start within some time; more are refused with 429"`
	StartsPerUser      StartWindow       `json:"starts_per_user,omitzero" doc:"how many executions the requests of one user may start within some time"`
	ExecutionsPerDay   int64             `json:"executions_per_day,omitempty" minimum:"0" doc:"how many executions are started on a day, in UTC; more requests are refused, and deliveries of triggers wait for the next day"`
	ExecutionsPerMonth int64             `json:"executions_per_month,omitempty" minimum:"0" doc:"how many executions are started in a month, in UTC"`
	StorageBytes       int64             `json:"storage_bytes,omitempty" minimum:"0" doc:"how many bytes journals, logs and large values may take up; when they are used up nothing new is started"`
	Retention          RetentionSettings `json:"retention,omitzero"`
}

// StartWindow is a number of starts within a time that slides.
type StartWindow struct {
	Count   int64 `json:"count,omitempty" minimum:"0" maximum:"1000000"`
	Seconds int64 `json:"seconds,omitempty" minimum:"0" maximum:"3600" doc:"60 when it is left out"`
}

// RetentionSettings is how long a workspace keeps what has ended.
type RetentionSettings struct {
	Executions Retained `json:"executions,omitzero" doc:"executions that have ended, with everything of them"`
	Deliveries Retained `json:"deliveries,omitzero" doc:"what has come to triggers; never less than a day, since senders repeat themselves"`
	Audit      Retained `json:"audit,omitzero" doc:"entries of the audit log"`
	BlobDays   int64    `json:"blob_days,omitempty" minimum:"0" maximum:"36500" doc:"after how many days large values and files go that nothing has ever named; those of removed executions go with these"`
}

// Retained says for how many days something is kept, and how many at most: what is older, or exceeds the number, is removed.
type Retained struct {
	Days  int64 `json:"days,omitempty" minimum:"0" maximum:"36500"`
	Count int64 `json:"count,omitempty" minimum:"0"`
}

// Limits are the limits of a workspace, and what is used of them.
type Limits struct {
	Settings LimitSettings `json:"settings"`
	Usage    LimitUsage    `json:"usage"`
	// Space is what the whole installation takes up; only admins see it.
	Space *Space `json:"space,omitempty"`
}

// LimitUsage is what a workspace uses.
type LimitUsage struct {
	Running             int64 `json:"running" doc:"executions that run now"`
	Waiting             int64 `json:"waiting" doc:"executions that wait for their turn"`
	ExecutionsToday     int64 `json:"executions_today"`
	ExecutionsThisMonth int64 `json:"executions_this_month"`
	Executions          int64 `json:"executions" doc:"executions that are kept"`
	StorageBytes        int64 `json:"storage_bytes" doc:"journals and large values together"`
	JournalBytes        int64 `json:"journal_bytes" doc:"of journals, snapshots and logs"`
	BlobBytes           int64 `json:"blob_bytes" doc:"of large values and files"`
	MeasuredTime        int64 `json:"measured_time" doc:"when the bytes were measured"`
}

// Space is what an installation takes up on its disk, in bytes.
type Space struct {
	DatabaseBytes int64 `json:"database_bytes" doc:"the database file"`
	FreeBytes     int64 `json:"free_bytes" doc:"of that, what holds nothing and is used again"`
	LogBytes      int64 `json:"log_bytes" doc:"the log beside the database"`
	BlobBytes     int64 `json:"blob_bytes" doc:"large values and files of all workspaces"`
	CopyBytes     int64 `json:"copy_bytes" doc:"copies of the database that upgrades have kept"`
	Shrinks       bool  `json:"shrinks" doc:"whether the database file becomes smaller when things are removed"`
}

// TidyReport is what was removed, and what is left.
type TidyReport struct {
	Executions int64 `json:"executions"`
	Deliveries int64 `json:"deliveries"`
	Audit      int64 `json:"audit"`
	Blobs      int64 `json:"blobs"`
	BlobBytes  int64 `json:"blob_bytes"`
	Others     int64 `json:"others" doc:"sessions, keys, memories, invitations and the like that have expired"`
	Space      Space `json:"space"`
}

// ExecutionDeleted says what went with an execution.
type ExecutionDeleted struct {
	ExecutionID string `json:"execution_id"`
	Executions  int64  `json:"executions" doc:"how many went: the execution, and those that it had started"`
	JournalRows int64  `json:"journal_rows"`
}
