// Package register is a file in which a process notes which runs have begun, to know which were under way when it died.
//
// A process that died may have been killed by one of the nodes it ran. So it notes which runs have begun, where the next
// process reads it: a small file that is written without waiting for the disk, since what is written so outlives the process,
// and a death of the whole machine is not a node's fault.
//
// The file is text, in lines of one length. The first says which process has it and whether that was told to stop; each other
// is a place for a run: what became of it, the process that ran it, its execution and its attempt, both as hashes.
//
// It decides nothing: hosts import it, and try again what it suspects.
package register
