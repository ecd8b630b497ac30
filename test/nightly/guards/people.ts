import { type Guard, guards } from './guard.ts'

export const PEOPLE: readonly Guard[] = [
  {
    file: 'src/access/people.ts',
    text: '  await tx`update sessions set ended_at = now() where person_id = ${id} and ended_at is null`\n',
    mutation: '',
    test: 'test/api/access/people.test.ts',
    claim: 'ending a person ends sessions and links in one commit',
    control:
      'two people cannot have the same name or e-mail address, whatever its letters and spaces',
  },
  ...guards({ file: 'src/access/sessions.ts', test: 'test/api/access/sign-in.test.ts' }, [
    {
      text: 'where link_hash = ${hashKey(request.token)} and signed_in_at is null',
      mutation: 'where link_hash = ${hashKey(request.token)}',
      claim: 'a link opens one session, even if it is used twenty times at the same moment',
      control: 'a session is over when it is idle for half an hour, and no request revives it',
    },
    {
      text: 'and link_until > now() and ended_at is null\n',
      mutation: 'and link_until > now()\n',
      claim: 'a session that is opened while the person is being ended, is not',
      control: 'a session is over when it is idle for half an hour, and no request revives it',
    },
  ]),
  {
    file: 'src/access/people.ts',
    text: '  return sql`p.merchants <@ ${[...reach.merchants]}::text[]`',
    mutation: '  return sql`p.merchants && ${[...reach.merchants]}::text[]`',
    test: 'test/console/people/people.test.ts',
    claim: 'an admin of one account sees and manages only people who have no other',
    control: 'an admin of one account gives nobody an account that is not their own',
  },
  ...guards({ file: 'src/access/types.ts', test: 'test/api/access/people.test.ts' }, [
    {
      text: "  agent: [...READ, 'refunds:write'],",
      mutation: "  agent: [...READ, 'refunds:write', 'refunds:approve'],",
      claim: 'the role agent reads, and besides has only ["refunds:write"]',
      control:
        'two people cannot have the same name or e-mail address, whatever its letters and spaces',
    },
    {
      text: '  viewer: READ,',
      mutation: "  viewer: [...READ, 'refunds:write'],",
      claim: 'the role viewer reads, and besides has only []',
      control:
        'two people cannot have the same name or e-mail address, whatever its letters and spaces',
    },
    {
      text: '  operator: [...READ, ...OPERATE],',
      mutation: "  operator: [...READ, 'refunds:write', ...OPERATE],",
      claim: 'the role operator reads, and besides has only ["ops","webhooks:write","cards:read"]',
      control:
        'two people cannot have the same name or e-mail address, whatever its letters and spaces',
    },
    {
      text: "  approver: [...READ, 'refunds:approve'],",
      mutation: "  approver: [...READ, 'refunds:approve', 'refunds:write'],",
      claim: 'the role approver reads, and besides has only ["refunds:approve"]',
      control:
        'two people cannot have the same name or e-mail address, whatever its letters and spaces',
    },
  ]),
  {
    file: 'src/access/principal.ts',
    text: 'LIVE_SESSION_SQL = `(s.ended_at is null and s.expires_at > now()',
    mutation: 'LIVE_SESSION_SQL = `(s.ended_at is null',
    test: 'test/api/access/sign-in.test.ts',
    claim: 'a session is over when it is twelve hours old, and no request revives it',
    control: 'a session is over when it is idle for half an hour, and no request revives it',
  },
  {
    file: 'src/access/principal.ts',
    text: 'order by id for no key update`',
    mutation: 'order by id`',
    test: 'test/races/sessions.test.ts',
    claim: 'of two admins who end a session of each other at once, one does, and the other is out',
    control: 'an admin who ends the session of another is not out',
  },
]
