import { describe, expect, it } from 'vitest'
import { addVisitor, dropProof, submitAs } from '../../support/console.ts'
import { useRig } from '../../support/use-started.ts'

const rig = useRig({ settings: { ROLE: 'web' } })

describe('a double click is told what the first one did', () => {
  it.each(['a session', 'the access of a person'])('that ends %s', async (what) => {
    const admin = await addVisitor(rig.database, { roles: ['admin'] })
    const { personId } = await addVisitor(rig.database, { roles: ['agent'] })
    const [session] = await rig.database.sql<{ id: string }[]>`
      select id from sessions where person_id = ${personId}`
    const action = what === 'a session' ? `sessions/${session?.id}/end` : 'end'
    const click = () => submitAs(rig, admin, `/console/people/${personId}/${action}`)
    const [first, second] = [await click(), await click()]
    expect([first.status, second.status]).toEqual([303, 303])
    const [one, two] = [first, second].map(({ headers }) => dropProof(headers.get('location')))
    expect(two).toBe(one)
  })
})
