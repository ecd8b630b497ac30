import type { Guard } from '../guards/guard.ts'

/** What became of a test: `missing` if the file has none of this name, or skips it. */
export type Outcome =
  | { state: 'missing'; reason?: string }
  | { state: 'passed' }
  | { state: 'failed'; error: string; message: string }

/** What was seen of a row. What comes after a fault is not played. */
export type Seen = {
  /** How often its text occurs in the file; undefined without the file. */
  occurrences: number | undefined
  /** The first error of the compiler in the mutated tree. */
  typeError?: string | undefined
  claim?: Outcome
  control?: Outcome
}

/** Judges a row: returns what is wrong with it and what to do, in one line, or undefined if it proves its guard. */
export function judge(guard: Guard, seen: Seen): string | undefined {
  return (
    judgeText(guard, seen.occurrences) ??
    (seen.typeError === undefined
      ? undefined
      : `the mutated project does not compile: write a mutation that does (${seen.typeError})`) ??
    (seen.claim && judgeClaim(guard, seen.claim)) ??
    (seen.control && judgeControl(guard, seen.control))
  )
}

function judgeText({ file, text, mutation }: Guard, occurrences: number | undefined) {
  if (occurrences === undefined) {
    return `${file} is gone: name the file that has the guard now, or remove the row with its feature`
  }
  if (occurrences === 0) {
    return `${file} has the text no more: copy the lines that are the guard now, or remove the row with its feature`
  }
  if (occurrences > 1) {
    return `${file} has the text ${occurrences} times: lengthen it until it occurs once`
  }
  if (text === mutation) return 'the mutation is the text itself: write a defect'
  return undefined
}

function judgeClaim({ test, claim }: Guard, outcome: Outcome): string | undefined {
  if (outcome.state === 'missing') return explainMissing(test, claim, outcome.reason)
  if (outcome.state === 'passed') {
    return `“${claim}” passes without the guard: the mutation changes nothing, or the test proves nothing`
  }
  if (outcome.error !== 'AssertionError') {
    return `“${claim}” ends with ${outcome.error}, not by an assertion: “${outcome.message}”`
  }
  return undefined
}

function judgeControl({ test, control }: Guard, outcome: Outcome): string | undefined {
  if (outcome.state === 'missing') return explainMissing(test, control, outcome.reason)
  if (outcome.state === 'passed') return undefined
  return `the control “${control}” fails as well: “${outcome.message}”; choose one that does not need the guard`
}

function explainMissing(test: string, name: string, reason: string | undefined): string {
  const why = reason === undefined ? '' : ` (${reason})`
  return `${test} has no test “${name}” that runs${why}: give the row the test's present name`
}
