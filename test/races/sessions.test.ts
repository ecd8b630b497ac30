import { expect, it } from 'vitest'
import { listSessions } from '../../src/access/sessions.ts'
import { addVisitor, submitAs, type Visitor } from '../support/console.ts'
import { waitUntilBlocked, whileUncommitted } from '../support/locks.ts'
import { useRig } from '../support/use-started.ts'

const rig = useRig({ settings: { ROLE: 'web' } })

const addAdmin = () => addVisitor(rig.database, { roles: ['admin'], merchants: ['*'] })
const countLive = async ({ personId }: Visitor) =>
  (await listSessions(rig.database.sql, personId)).length
const findSessionId = async ({ personId }: Visitor) =>
  (await listSessions(rig.database.sql, personId))[0]?.id

/** Has both submit a form, and lets neither go on before both hold the locks that they begin with. */
async function submitBoth(forms: readonly [Visitor, string][]): Promise<(string | null)[]> {
  return await whileUncommitted(
    rig.database,
    (held) => held`lock table audit_entries in share mode`,
    async (commit) => {
      const answers = forms.map(([who, path]) => submitAs(rig, who, path))
      await waitUntilBlocked(rig.database, forms.length)
      await commit()
      const all = await Promise.all(answers)
      expect(all.map(({ status }) => status)).toEqual([303, 303])
      return all.map(({ headers }) => headers.get('location'))
    },
  )
}

it.each(['a session', 'the access'])(
  'of two admins who end %s of each other at once, one does, and the other is out',
  async (what) => {
    const [one, two] = [await addAdmin(), await addAdmin()]
    const form = async (of: Visitor) =>
      `/console/people/${of.personId}/${what === 'the access' ? '' : `sessions/${await findSessionId(of)}/`}end`
    const pages = await submitBoth([
      [one, await form(two)],
      [two, await form(one)],
    ])
    expect(pages.filter((page) => page?.includes('notice='))).toHaveLength(1)
    expect(pages.filter((page) => page === '/console/sign-in')).toHaveLength(1)
    expect((await countLive(one)) + (await countLive(two))).toBe(1)
  },
)

it('an admin who ends the session of another is not out', async () => {
  const [one, two] = [await addAdmin(), await addAdmin()]
  const path = `/console/people/${two.personId}/sessions/${await findSessionId(two)}/end`
  expect((await submitAs(rig, one, path)).headers.get('location')).toContain('notice=')
  expect([await countLive(one), await countLive(two)]).toEqual([1, 0])
})
