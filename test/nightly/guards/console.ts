import type { Guard } from './guard.ts'

export const CONSOLE: readonly Guard[] = [
  {
    file: 'src/console/refund-form/ticket.ts',
    text: "  return ['refund form', personId, path]",
    mutation: "  return ['refund form', personId.slice(0, 0), path]",
    test: 'test/console/refund-form/ticket.test.ts',
    claim: 'the ticket of a form is no ticket of another person',
    control: 'the ticket of a form is no ticket of another payment',
  },
  {
    file: 'src/console/refund-form/ticket.ts',
    text: "  return ['refund form', personId, path]",
    mutation: "  return ['refund form', personId, path.slice(0, 0)]",
    test: 'test/console/refund-form/ticket.test.ts',
    claim: 'the ticket of a form is no ticket of another account',
    control: 'the ticket of a form is no ticket of another person',
  },
  {
    file: 'src/console/refund-form/ticket.ts',
    text: "  if (signer.checkFingerprint(text, { value, keyId }) !== 'same') return undefined\n",
    mutation:
      "  if (signer.checkFingerprint(text, { value, keyId }) === 'unknown') return undefined\n",
    test: 'test/console/refund-form/ticket.test.ts',
    claim: 'the ticket of a form is no ticket of another payment',
    control: 'the ticket of a form is none in ""',
  },
  {
    file: 'src/console/session.ts',
    text: '    if (token === undefined || !stored?.isLive) return',
    mutation: '    if (token === undefined || !stored) return',
    test: 'test/console/sign-in/sign-in.test.ts',
    claim: 'signing out ends the session on the server, too',
    control:
      'without a session every page leads to the sign-in page, which explains how to get a link',
  },
  {
    file: 'src/console/session.ts',
    text: '    if (stored.isDueForRecord && !isRefresh(c)) await',
    mutation: '    if (stored.isDueForRecord) await',
    test: 'test/console/story/refresh.test.ts',
    claim: 'a page that asks for itself again does not extend the session',
    control:
      'a page that asks for itself again is led to the sign-in once the session has ended, and reads nothing more',
  },
  {
    file: 'src/console/story/post-hold.ts',
    text: "  requireScope(c, 'ops')\n",
    mutation: "  requireScope(c, 'payments:read')\n",
    test: 'test/console/story/post-hold.test.ts',
    claim: 'who lacks the role cannot post a hold',
    control: 'a hold of a payment is set with a reason, shown with it, and released',
  },
  {
    file: 'src/console/tasks/refund/refund-routes.ts',
    text: '  requireScope(c, scope)\n',
    mutation: "  requireScope(c, scope === 'ops' ? 'refunds:read' : 'payments:read')\n",
    test: 'test/console/every-route.test.ts',
    claim:
      'POST /console/refunds/:merchant/:refundId/approval is refused to every role that is not one of its own',
    control: 'every route of the console has a row, and every row is a route',
  },
  {
    file: 'src/console/tasks/task-routes.ts',
    text: "    requireScope(c, 'webhooks:write')\n",
    mutation: "    requireScope(c, 'payments:read')\n",
    test: 'test/console/every-route.test.ts',
    claim:
      'POST /console/webhooks/:endpointId/enable is refused to every role that is not one of its own',
    control: 'every route of the console has a row, and every row is a route',
  },
  {
    file: 'src/console/lists/export.ts',
    text: '        controller.error(err)\n',
    mutation: '        controller.close()\n',
    test: 'test/console/export.test.ts',
    claim: 'a download is cut off when its rows cannot be read to the end',
    control: 'a month as a file keeps formulas out of spreadsheets, and every separator in quotes',
  },
  {
    file: 'src/console/lists/export.ts',
    text: '    if (!(await isStillAllowed())) {\n',
    mutation: '    if (!(await isStillAllowed()) && rows.length === 0) {\n',
    test: 'test/console/export.test.ts',
    claim: 'a download is cut off when the session has ended',
    control: 'a download is cut off not while nothing changes',
  },
  {
    file: 'src/console/session.ts',
    text: 'zone: stored.timeZone ?? view.zone',
    mutation: 'zone: view.zone ?? stored.timeZone',
    test: 'test/console/export.test.ts',
    claim:
      'a month as a file begins and ends by the clock of a person who has a time zone of their own',
    control:
      'a month as a file of CSV has every row of the list, in its words, its zone and its order',
  },
  {
    file: 'src/console/session.ts',
    text: '  return now?.isLive === true && !findLoss(access, { ...now.person, roles: now.roles })\n',
    mutation:
      "  return now?.isLive === true && (!findLoss(access, { ...now.person, roles: now.roles }) || token !== '')\n",
    test: 'test/console/export.test.ts',
    claim: 'a download is cut off when the role has been taken away',
    control: 'a download is cut off when the session has ended',
  },
  {
    file: 'src/console/lists/export.ts',
    text: "replace(/^0+/, '').length <= 15",
    mutation: "replace(/^0+/, '').length <= 30",
    test: 'test/console/export.test.ts',
    claim:
      'a month as a file of Excel has the same, with numbers that can be added up where they are exact',
    control:
      'a month as a file of CSV has every row of the list, in its words, its zone and its order',
  },
  {
    file: 'src/console/lists/routes.tsx',
    text: '  requireScope(c, listing.scope)\n',
    mutation: "  requireScope(c, 'payments:read')\n",
    test: 'test/console/export.test.ts',
    claim:
      "a month as a file holds no other account's rows, and nothing for who may not read the list",
    control: 'a month as a file keeps formulas out of spreadsheets, and every separator in quotes',
  },
]
