#!/bin/sh
echo 'one'
