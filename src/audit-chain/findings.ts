/** What `verify` finds; the text explains it. */
export const FINDINGS = {
  changed: 'the entry, its place or its link is not what was recorded',
  missing: 'the entry was deleted',
  link_missing: 'the link was deleted',
  inserted: 'the entry is in no chain, although everything of its time is: it was added later',
  not_chained:
    'the entry has been waiting for its chain for more than two minutes; does a worker run?',
  backdated: 'the entry carries a time more than an hour before that of an earlier one',
  no_signed_head: 'the signed head of the chain was deleted',
  signature:
    'the signature of the head is wrong: the head was changed, or DATA_ENCRYPTION_KEY is not the key it was made with',
  rewritten: 'the last link is not the signed one: the chain was rewritten',
  cut_off: 'the chain ends before its signed head: the newest links were deleted',
  appended: 'links follow the signed head: this service did not add them',
  before_start: 'the link stands before the start of the chain: this service did not add it',
  shorter_than_noted:
    'the chain ends before the head that was noted: its end was cut off, or the database was set back',
  other_than_noted: 'the link at the noted position has another hash: the chain was replaced',
} as const

export type FindingKind = keyof typeof FINDINGS

/** A finding at a position of a chain, about an entry; null where there is none. */
export type Finding = { kind: FindingKind; position: number | null; entryId: number | null }

/** Findings of one chain: the first ones, and the number of all. */
export type FindingList = { findings: Finding[]; count: number }

/** So many findings of a chain are listed; all are counted. */
const LISTED = 100

export const createFindingList = (): FindingList => ({ findings: [], count: 0 })

export function addFinding(
  list: FindingList,
  kind: FindingKind,
  position: number | null = null,
  entryId: number | null = null,
): void {
  list.count += 1
  if (list.findings.length < LISTED) list.findings.push({ kind, position, entryId })
}
