import { type Guard, guards } from './guard.ts'

export const CONSOLE: readonly Guard[] = [
  {
    file: 'src/console/assets/console.js',
    text: 'event.timeStamp - sentAt < 1_000',
    mutation: 'event.timeStamp < sentAt',
    test: 'test/console/stories.test.ts',
    claim:
      "a form, in en loses nothing and is sent once, with Back, reload and a second tab: 'a note on a refund'",
    control:
      "a form, in en loses nothing and is sent once, with Back, reload and a second tab: 'the filters of a list'",
  },
  ...guards({ file: 'src/console/kept.ts', test: 'test/console/refund-form/repeated.test.ts' }, [
    {
      text: 'row: `${personId} ${path}` }) as const',
      mutation: 'row: `${personId.slice(0, 0)} ${path}` }) as const',
      claim: 'a check of somebody or something else is refused, and makes no refund',
      control:
        'a check of somebody or something else of the longest receiver and reason can be confirmed',
    },
    {
      text: 'row: `${personId} ${path}` }) as const',
      mutation: 'row: `${personId} ${path.slice(0, 0)}` }) as const',
      claim: 'a check of somebody or something else is refused, and makes no refund',
      control:
        'a check of somebody or something else of the longest receiver and reason can be confirmed',
    },
    {
      text: 'forS * 1000 ? schema.parse(content)',
      mutation: 'Math.max(forS, 7200) * 1000 ? schema.parse(content)',
      claim: 'a check of somebody or something else is too old after an hour',
      control: 'a check of somebody or something else is refused, and makes no refund',
    },
  ]),
  {
    file: 'src/refunds/find.ts',
    text: "and r.status = 'returned' and r.return_sightings < ${released}",
    mutation: "and r.status = 'returned' and r.return_sightings <= ${released}",
    test: 'test/console/tasks/refund.test.ts',
    claim:
      'what a person decided before as returned offers that person only []: another one can decide the rest',
    control:
      'what a person decided before as failed offers that person only ["succeeded"]: another one can decide the rest',
  },
  {
    file: 'src/refunds/find.ts',
    text: "const isAsked = statuses.includes('returned') && after === undefined",
    mutation: "const isAsked = statuses.includes('accepted') && after === undefined",
    test: 'test/console/tasks/refund.test.ts',
    claim:
      'what a person decided before as returned offers that person only []: another one can decide the rest',
    control:
      'what a person decided before as failed offers that person only ["succeeded"]: another one can decide the rest',
  },
  {
    file: 'src/console/words.ts',
    text: "t(isFreed(refund) ? 'refunds.next.returned' :",
    mutation: "t(!isFreed(refund) ? 'refunds.next.returned' :",
    test: 'test/unit/console/story/words.test.ts',
    claim:
      'what happens to a refund next says that nothing is left to do once a second person or the gateway has released what came back',
    control: 'what happens to a refund next says what a success that was only inferred waits for',
  },
  ...guards(
    { file: 'src/console/refund-form.tsx', test: 'test/console/refund-form/repeated.test.ts' },
    [
      {
        text: 'if (used) return used',
        mutation: "if (used && token === '') return used",
        claim: 'the same form, confirmed again after more than an hour leads to its refund',
        control: 'a check of somebody or something else is too old after an hour',
      },
      {
        text: 'if (used) return used',
        mutation: "if (used) throw refuse({}, t('notice.refundRepeated'))",
        claim:
          'the same form, confirmed again with another preview after more than an hour names the refund that it was used for, and makes none',
        control: 'a check of somebody or something else is too old after an hour',
      },
      {
        text: "alert: t('refundForm.alerts.used')",
        mutation: "alert: t('notice.refundRepeated')",
        claim:
          'the same form, confirmed again with another preview after more than an hour names the refund that it was used for, and makes none',
        control: 'a check of somebody or something else is too old after an hour',
      },
      {
        text: "if (!checked) return { alert: t('refundForm.alerts.unknown') }",
        mutation: "if (!checked) return { alert: t('refundForm.alerts.expired') }",
        claim: 'a check of somebody or something else is refused, and makes no refund',
        control: 'a check of somebody or something else is too old after an hour',
      },
    ],
  ),
  ...guards({ file: 'src/console/refund-subject.ts', test: 'test/console/tasks/refund.test.ts' }, [
    {
      text: "standing.asked || can('refunds:approve') ?",
      mutation: "standing.asked || can('refunds:read') ?",
      claim:
        'a refund that waits for an approval shows its receiver whole to who may approve and who asked for it, while it waits, and masked to all others',
      control: 'a refund that waits for an approval is declined with a reason',
    },
    {
      text: 'if (receiver === null || !STATES[status].unsent) return undefined',
      mutation:
        'if (receiver === null || (!STATES[status].unsent && refundId === "")) return undefined',
      claim:
        'a refund that waits for an approval shows its receiver whole to who may approve and who asked for it, while it waits, and masked to all others',
      control: 'a refund that waits for an approval is declined with a reason',
    },
  ]),
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
    file: 'src/console/holds.tsx',
    text: "  scope: 'ops',\n",
    mutation: "  scope: 'payments:read',\n",
    test: 'test/console/every-route.test.ts',
    claim:
      'POST /console/payments/:merchant/:id/hold is refused to every role that is not one of its own',
    control: 'every route of the console has a row, and every row is a route',
  },
  {
    file: 'src/console/refund.tsx',
    text: "    scope: 'ops',\n    explain: explainHold",
    mutation: "    scope: 'refunds:read',\n    explain: explainHold",
    test: 'test/console/every-route.test.ts',
    claim:
      'POST /console/refunds/:merchant/:refundId/hold is refused to every role that is not one of its own',
    control: 'every route of the console has a row, and every row is a route',
  },
  {
    file: 'src/console/audit-list.ts',
    text: '${[...merchants]}), ${coversAll})',
    mutation: '${[...merchants]}), ${coversAll || merchants.length > 0})',
    test: 'test/console/audit.test.ts',
    claim:
      'the audit log shows nothing of other accounts, and what belongs to none only to who covers all',
    control: 'the audit log says in words who did what, and what was refused',
  },
  {
    file: 'src/console/page.ts',
    text: '      require(c, action)\n',
    mutation:
      "      require(c, action.scope === undefined ? action : { scope: 'payments:read' })\n",
    test: 'test/console/every-route.test.ts',
    claim:
      'POST /console/refunds/:merchant/:refundId/approval is refused to every role that is not one of its own',
    control: 'every route of the console has a row, and every row is a route',
  },
  {
    file: 'src/console/tasks.tsx',
    text: "    scope: 'webhooks:write',\n",
    mutation: "    scope: 'payments:read',\n",
    test: 'test/console/every-route.test.ts',
    claim:
      'POST /console/webhooks/:endpointId/enable is refused to every role that is not one of its own',
    control: 'every route of the console has a row, and every row is a route',
  },
  ...guards({ file: 'src/console/export.ts', test: 'test/console/export.test.ts' }, [
    {
      text: '        controller.error(err)\n',
      mutation: '        controller.close()\n',
      claim: 'a download is cut off when its rows cannot be read to the end',
      control:
        'a month as a file keeps formulas out of spreadsheets, and every separator in quotes',
    },
    {
      text: '    if (!(await isStillAllowed())) {\n',
      mutation: '    if (!(await isStillAllowed()) && rows.length === 0) {\n',
      claim: 'a download is cut off when the session has ended',
      control: 'a download is cut off not while nothing changes',
    },
  ]),
  ...guards({ file: 'src/console/session.ts', test: 'test/console/export.test.ts' }, [
    {
      text: 'zone: stored.timeZone ?? view.zone',
      mutation: 'zone: view.zone ?? stored.timeZone',
      claim:
        'a month as a file begins and ends by the clock of a person who has a time zone of their own',
      control:
        'a month as a file keeps formulas out of spreadsheets, and every separator in quotes',
    },
    {
      text: '  return now?.isLive === true && !findLoss(access, { ...now.person, roles: now.roles })\n',
      mutation:
        "  return now?.isLive === true && (!findLoss(access, { ...now.person, roles: now.roles }) || token !== '')\n",
      claim: 'a download is cut off when the role has been taken away',
      control: 'a download is cut off when the session has ended',
    },
  ]),
  {
    file: 'src/console/export.ts',
    text: "replace(/^0+/, '').length <= 15",
    mutation: "replace(/^0+/, '').length <= 30",
    test: 'test/console/export.test.ts',
    claim: 'a month as a file of CSV and of Excel is the list, page by page, also added up, in en',
    control:
      'a month as a file begins and ends by the clock of a person who has a time zone of their own',
  },
  {
    file: 'src/console/list-page.tsx',
    text: '  requireScope(c, listing.scope)\n',
    mutation: "  requireScope(c, 'payments:read')\n",
    test: 'test/console/export.test.ts',
    claim:
      "a month as a file holds no other account's rows, and nothing for who may not read the list",
    control: 'a month as a file keeps formulas out of spreadsheets, and every separator in quotes',
  },
  ...guards({ file: 'src/console/audit-list.ts', test: 'test/console/audit.test.ts' }, [
    {
      text: "({ id, at }: ListedEntry) => ({ time: at, id, merchantCode: '' })",
      mutation:
        "({ id, at, merchantCode: of }: ListedEntry) => ({ time: at, id, merchantCode: of ?? '' })",
      claim: 'the audit log says nothing of the account of the entry where a page ends',
      control: 'the audit log says in words who did what, and what was refused',
    },
    {
      text: 'nullif(merchant_code, ${EVERY_MERCHANT})',
      mutation: "nullif(merchant_code, ${EVERY_MERCHANT + '-'})",
      claim: 'the audit log says in words who did what, and what was refused',
      control:
        'the audit log shows nothing of other accounts, and what belongs to none only to who covers all',
    },
  ]),
  {
    file: 'src/health/overview.ts',
    text: 'select due_at from transactions as t where t.merchant_code = a.merchant_code and t.due_at',
    mutation: 'select due_at from transactions as t where a.merchant_code is not null and t.due_at',
    test: 'test/console/health.test.ts',
    claim: 'the health page shows nothing of an account that is not the person’s',
    control: 'the figures of a minute are kept for a day',
  },
  {
    file: 'src/health/figures.ts',
    text: 'where merchant_code = any(${[...merchants]}::text[]) and at >',
    mutation: 'where ${[...merchants].length} > 0 and at >',
    test: 'test/console/health.test.ts',
    claim: 'the health page shows nothing of an account that is not the person’s',
    control: 'the figures of a minute are kept for a day',
  },
  ...guards({ test: 'test/console/tasks/discrepancy.test.ts' }, [
    {
      file: 'src/console/external.tsx',
      text: 'external.find((one) => isAboutExternal(row, one) &&',
      mutation: "external.findLast((one) => (isAboutExternal(row, one) || one.id !== '') &&",
      claim:
        'a refund made elsewhere that is one of two is decided on the page about it, which names it and does not offer the other',
      control: 'a refund made elsewhere of another payment is not decided there',
    },
    {
      file: 'src/refunds/external-view.ts',
      text: 'position(f.request_id in ${text}::text) > 0 desc',
      mutation: 'position(f.request_id in ${text}::text) < 0 desc',
      claim:
        'a refund made elsewhere is found first on the page about it, and by its link, however many there are',
      control: 'a refund made elsewhere of another payment is not decided there',
    },
    {
      file: 'src/refunds/external-view.ts',
      text: "order by f.id::text = ${id ?? ''} or",
      mutation: "order by f.id::text || '' = ${`${id}?`} or",
      claim:
        'a refund made elsewhere is found first on the page about it, and by its link, however many there are',
      control: 'a refund made elsewhere of another payment is not decided there',
    },
  ]),
  {
    file: 'src/console/search.tsx',
    text: "if (hit.type === 'refund') return refundPagePath",
    mutation: "if (hit.id === '') return refundPagePath",
    test: 'test/console/search/search.test.ts',
    claim: 'one hit leads on a refund id, to the page of the refund',
    control: 'one hit leads on a transaction id',
  },
  ...guards({ file: 'src/console/kept.ts', test: 'test/console/tasks/refund.test.ts' }, [
    {
      text: "open(ctx, owner, given.split('.')[1] ?? '', Notice, SAID_S)",
      mutation:
        "open(ctx, owner, given.split('.')[1] ?? '', Notice, SAID_S) ?? Notice.safeParse({ code: given.split('.')[0], count: 0 }).data",
      claim:
        'a refund that waits for an approval is said to be declined to whoever declined it, on its page, for a minute',
      control: 'a refund that waits for an approval is declined with a reason',
    },
    {
      text: 'const SAID_S = 60\n',
      mutation: 'const SAID_S = 3600\n',
      claim:
        'a refund that waits for an approval is said to be declined to whoever declined it, on its page, for a minute',
      control: 'a refund that waits for an approval is declined with a reason',
    },
  ]),
  {
    file: 'src/console/layout.tsx',
    text: "{...{ id: 'announcer', class",
    mutation: "{...{ id: 'status', class",
    test: 'test/console/lists.test.ts',
    claim: 'the list of payments names no two elements the same',
    control: 'the list of transactions is read page by page, newest first',
  },
  {
    file: 'src/console/app.tsx',
    text: '`errors.${known}.body`, { requestId, detail })',
    mutation: '`errors.${known}`, { requestId, detail }) ?? detail',
    test: 'test/console/language.test.ts',
    claim: 'the language of a page is that of a refusal, too, around what is said in English',
    control: 'the language of a page is that of the person, with its numbers, times and zone',
  },
  {
    file: 'src/console/kept.ts',
    text: 'deflateRawSync(JSON.stringify({ at: now().getTime(), content }))',
    mutation: 'deflateRawSync(JSON.stringify({ at: now().getTime(), content }), { level: 0 })',
    test: 'test/console/refund-form/reasons.test.ts',
    claim:
      'the reasons of an account of a long list in Vietnamese come back whole with what is wrong',
    control: 'the reasons of an account are changed under the name of the admin',
  },
  {
    file: 'src/http/body.ts',
    text: "throw new DomainError('invalid_json', 'The form is not percent-encoded UTF-8 text')",
    mutation: "if (text === '') throw new DomainError('invalid_json', 'The form is empty')",
    test: 'test/console/odd-addresses.test.ts',
    claim: 'a form with %FF%FEx, which is no UTF-8 text, is refused, and changes nothing',
    control: 'a NUL in an address names nothing, signed in or not',
  },
  {
    file: 'src/console/words.ts',
    text: "return shown.sameOrder.length > 0 && comparePaid(shown) !== 'paidInPart'",
    mutation: "return shown.sameOrder.length > 1 && comparePaid(shown) !== 'paidInPart'",
    test: 'test/console/refund-form/surplus.test.ts',
    claim:
      'the form of what was paid twice is the next step of each transaction of the order, until it is asked for',
    control: 'the form of what was paid twice explains why there is nothing to fill in',
  },
]
