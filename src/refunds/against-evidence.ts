import { DomainError } from '../errors.ts'

/** A decision is refused because it contradicts the evidence; it can be repeated with `againstEvidence`. */
export class AgainstEvidenceError extends DomainError {
  /** What it contradicts, in words. */
  readonly evidence: readonly string[]
  constructor(
    detail: string,
    options: { extra: Readonly<Record<string, string>> },
    evidence: readonly string[],
  ) {
    super('against_evidence', detail, { extra: { ...options.extra } })
    this.evidence = evidence
  }
}
