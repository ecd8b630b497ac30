import type { Access } from './types.ts'

/** Describes who did something, to follow what was done: "requested by Mai", "requested with API key shop". */
export function describeActor({ name, isPerson }: Pick<Access, 'name' | 'isPerson'>): string {
  return isPerson ? `by ${name}` : `with API key ${name}`
}
