___INFO___

{
  "type": "TAG",
  "id": "cvt_temp_public_id",
  "version": 1,
  "securityGroups": [],
  "displayName": "Tributary",
  "categories": [
    "AFFILIATE_MARKETING",
    "ATTRIBUTION"
  ],
  "brand": {
    "id": "brand_dummy",
    "displayName": ""
  },
  "description": "Attributes visitors and their purchases to affiliates. Loads the SDK once the visitor has consented to ad_storage, and deletes what it stored after a revocation.",
  "containerContexts": [
    "WEB"
  ]
}


___TEMPLATE_PARAMETERS___

[
  {
    "type": "TEXT",
    "name": "scriptUrl",
    "displayName": "Address of tributary.js",
    "simpleValueType": true,
    "valueHint": "https://www.shop.example/tributary.js",
    "help": "The file of the npm package or of release.sh, on a host of yours.",
    "valueValidators": [
      {
        "type": "REGEX",
        "args": [
          "^https://[^/?#]+/tributary\\.js$"
        ],
        "errorMessage": "Enter https://, a host and /tributary.js."
      }
    ]
  },
  {
    "type": "TEXT",
    "name": "apiKey",
    "displayName": "SDK key",
    "simpleValueType": true,
    "valueHint": "pk_live_…",
    "valueValidators": [
      {
        "type": "REGEX",
        "args": [
          "^pk_(live|test)_.+$"
        ],
        "errorMessage": "An SDK key begins with pk_live_ or pk_test_."
      }
    ]
  },
  {
    "type": "TEXT",
    "name": "apiBaseUrl",
    "displayName": "Base address of the service",
    "simpleValueType": true,
    "valueHint": "https://tributary.example.com",
    "help": "Only if tributary.js was built without it, or for a staging host."
  },
  {
    "type": "TEXT",
    "name": "userId",
    "displayName": "User id",
    "simpleValueType": true,
    "help": "A variable with the id that your billing provider reports. Empty while nobody is signed in; fire the tag again after the sign-in."
  }
]


___SANDBOXED_JS_FOR_WEB_TEMPLATE___

const addConsentListener = require('addConsentListener');
const callInWindow = require('callInWindow');
const getUrl = require('getUrl');
const injectScript = require('injectScript');
const isConsentGranted = require('isConsentGranted');
const makeString = require('makeString');
const queryPermission = require('queryPermission');
const setInWindow = require('setInWindow');

const CONSENT = 'ad_storage';
const options = { apiKey: data.apiKey, apiBaseUrl: data.apiBaseUrl || undefined };
let landing = getUrl();
let isGranted = isConsentGranted(CONSENT);
let isRequested = false;
let isLoaded = false;
let isOwnQueue = false;

const apply = () => {
  callInWindow('tributary.setEnabled', isGranted);
  // Once: a consent after a revocation begins anew.
  if (isGranted && landing) {
    callInWindow('tributary.attribute', landing);
    landing = '';
  }
  // The start changes nothing if the queue, or an earlier tag, has made it.
  callInWindow('tributary.start', options);
  // Before the start, false only means that the visitor has not chosen yet.
  callInWindow('tributary.setEnabled', isGranted);
  // A variable of the data layer may be a number.
  if (isGranted && data.userId) callInWindow('tributary.identify', makeString(data.userId));
};

const load = (onSuccess, onFailure) => {
  isRequested = true;
  const calls = [['setEnabled', true], ['attribute', landing], ['start', options]];
  // The page may have a queue of its own, or the SDK. Those stay.
  isOwnQueue = setInWindow('tributary', { q: calls }, false);
  injectScript(data.scriptUrl, () => {
    isLoaded = true;
    apply();
    onSuccess();
  }, onFailure, data.scriptUrl);
};

if (!queryPermission('inject_script', data.scriptUrl)) {
  data.gtmOnFailure();
} else {
  addConsentListener(CONSENT, (type, isNowGranted) => {
    isGranted = isNowGranted;
    if (isLoaded) apply();
    else if (!isRequested && isGranted) load(() => {}, () => {});
    // The script is on its way: it must not start with the consent of before.
    else if (isOwnQueue && !isGranted) setInWindow('tributary', { q: [] }, true);
  });
  if (isGranted) load(data.gtmOnSuccess, data.gtmOnFailure);
  else data.gtmOnSuccess();
}


___WEB_PERMISSIONS___

[
  {
    "instance": {
      "key": {
        "publicId": "access_globals",
        "versionId": "1"
      },
      "param": [
        {
          "key": "keys",
          "value": {
            "type": 2,
            "listItem": [
              {
                "type": 3,
                "mapKey": [
                  {
                    "type": 1,
                    "string": "key"
                  },
                  {
                    "type": 1,
                    "string": "read"
                  },
                  {
                    "type": 1,
                    "string": "write"
                  },
                  {
                    "type": 1,
                    "string": "execute"
                  }
                ],
                "mapValue": [
                  {
                    "type": 1,
                    "string": "tributary"
                  },
                  {
                    "type": 8,
                    "boolean": true
                  },
                  {
                    "type": 8,
                    "boolean": true
                  },
                  {
                    "type": 8,
                    "boolean": false
                  }
                ]
              },
              {
                "type": 3,
                "mapKey": [
                  {
                    "type": 1,
                    "string": "key"
                  },
                  {
                    "type": 1,
                    "string": "read"
                  },
                  {
                    "type": 1,
                    "string": "write"
                  },
                  {
                    "type": 1,
                    "string": "execute"
                  }
                ],
                "mapValue": [
                  {
                    "type": 1,
                    "string": "tributary.attribute"
                  },
                  {
                    "type": 8,
                    "boolean": false
                  },
                  {
                    "type": 8,
                    "boolean": false
                  },
                  {
                    "type": 8,
                    "boolean": true
                  }
                ]
              },
              {
                "type": 3,
                "mapKey": [
                  {
                    "type": 1,
                    "string": "key"
                  },
                  {
                    "type": 1,
                    "string": "read"
                  },
                  {
                    "type": 1,
                    "string": "write"
                  },
                  {
                    "type": 1,
                    "string": "execute"
                  }
                ],
                "mapValue": [
                  {
                    "type": 1,
                    "string": "tributary.identify"
                  },
                  {
                    "type": 8,
                    "boolean": false
                  },
                  {
                    "type": 8,
                    "boolean": false
                  },
                  {
                    "type": 8,
                    "boolean": true
                  }
                ]
              },
              {
                "type": 3,
                "mapKey": [
                  {
                    "type": 1,
                    "string": "key"
                  },
                  {
                    "type": 1,
                    "string": "read"
                  },
                  {
                    "type": 1,
                    "string": "write"
                  },
                  {
                    "type": 1,
                    "string": "execute"
                  }
                ],
                "mapValue": [
                  {
                    "type": 1,
                    "string": "tributary.setEnabled"
                  },
                  {
                    "type": 8,
                    "boolean": false
                  },
                  {
                    "type": 8,
                    "boolean": false
                  },
                  {
                    "type": 8,
                    "boolean": true
                  }
                ]
              },
              {
                "type": 3,
                "mapKey": [
                  {
                    "type": 1,
                    "string": "key"
                  },
                  {
                    "type": 1,
                    "string": "read"
                  },
                  {
                    "type": 1,
                    "string": "write"
                  },
                  {
                    "type": 1,
                    "string": "execute"
                  }
                ],
                "mapValue": [
                  {
                    "type": 1,
                    "string": "tributary.start"
                  },
                  {
                    "type": 8,
                    "boolean": false
                  },
                  {
                    "type": 8,
                    "boolean": false
                  },
                  {
                    "type": 8,
                    "boolean": true
                  }
                ]
              }
            ]
          }
        }
      ]
    },
    "clientAnnotations": {
      "isEditedByUser": true
    },
    "isRequired": true
  },
  {
    "instance": {
      "key": {
        "publicId": "access_consent",
        "versionId": "1"
      },
      "param": [
        {
          "key": "consentTypes",
          "value": {
            "type": 2,
            "listItem": [
              {
                "type": 3,
                "mapKey": [
                  {
                    "type": 1,
                    "string": "consentType"
                  },
                  {
                    "type": 1,
                    "string": "read"
                  },
                  {
                    "type": 1,
                    "string": "write"
                  }
                ],
                "mapValue": [
                  {
                    "type": 1,
                    "string": "ad_storage"
                  },
                  {
                    "type": 8,
                    "boolean": true
                  },
                  {
                    "type": 8,
                    "boolean": false
                  }
                ]
              }
            ]
          }
        }
      ]
    },
    "clientAnnotations": {
      "isEditedByUser": true
    },
    "isRequired": true
  },
  {
    "instance": {
      "key": {
        "publicId": "inject_script",
        "versionId": "1"
      },
      "param": [
        {
          "key": "urls",
          "value": {
            "type": 2,
            "listItem": [
              {
                "type": 1,
                "string": "https://*/tributary.js"
              }
            ]
          }
        }
      ]
    },
    "clientAnnotations": {
      "isEditedByUser": true
    },
    "isRequired": true
  },
  {
    "instance": {
      "key": {
        "publicId": "get_url",
        "versionId": "1"
      },
      "param": [
        {
          "key": "urlParts",
          "value": {
            "type": 1,
            "string": "any"
          }
        },
        {
          "key": "queriesAllowed",
          "value": {
            "type": 1,
            "string": "any"
          }
        }
      ]
    },
    "clientAnnotations": {
      "isEditedByUser": true
    },
    "isRequired": true
  }
]


___TESTS___

scenarios:
- name: A visitor with a consent gets the SDK, and the tag succeeds
  code: |-
    runCode(input);

    assertApi('injectScript').wasCalled();
    assertApi('setInWindow').wasCalled();
    assertApi('gtmOnSuccess').wasCalled();
- name: Without a consent nothing is loaded, and the tag succeeds
  code: |-
    mock('isConsentGranted', false);

    runCode(input);

    assertApi('injectScript').wasNotCalled();
    assertApi('setInWindow').wasNotCalled();
    assertApi('gtmOnSuccess').wasCalled();
- name: A later consent loads the SDK
  code: |-
    let listener;
    mock('isConsentGranted', false);
    mock('addConsentListener', (type, callback) => {
      listener = callback;
    });

    runCode(input);
    listener('ad_storage', true);

    assertApi('injectScript').wasCalled();
- name: A revocation reaches the SDK
  code: |-
    let listener;
    let consent;
    mock('addConsentListener', (type, callback) => {
      listener = callback;
    });
    mock('callInWindow', (name, value) => {
      if (name === 'tributary.setEnabled') consent = value;
    });

    runCode(input);
    assertThat(consent).isEqualTo(true);
    listener('ad_storage', false);
    assertThat(consent).isEqualTo(false);
- name: An address that the permissions do not contain fails the tag
  code: |-
    mock('queryPermission', false);

    runCode(input);

    assertApi('injectScript').wasNotCalled();
    assertApi('gtmOnFailure').wasCalled();
setup: |-
  const input = {
    scriptUrl: 'https://www.shop.example/tributary.js',
    apiKey: 'pk_live_1'
  };
  mock('isConsentGranted', true);
  mock('queryPermission', true);
  mock('addConsentListener', () => {});
  mock('makeString', (value) => '' + value);
  mock('getUrl', 'https://www.shop.example/?via=spring');
  mock('setInWindow', true);
  mock('callInWindow', () => {});
  mock('injectScript', (url, onSuccess) => {
    onSuccess();
  });


___NOTES___

Written by hand. The tests of Tributary's Web SDK run these scenarios and this code, in Chromium, with a small implementation of the sandbox of
their own. The editor of Google Tag Manager has not loaded this file yet.
