import { CLI } from '../version.ts'

/** The command that applies what is pending, for messages to operators. */
export const MIGRATE_COMMAND = `"${CLI} migrate"`

/** Describes how many migrations are pending, at least one. */
export function countPending(pending: readonly string[]): string {
  return pending.length === 1
    ? '1 migration is pending'
    : `${pending.length} migrations are pending`
}
